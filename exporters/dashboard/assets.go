package dashboard

import (
	"embed"
	"html"
	"path"
	"strings"
)

//go:embed assets
var embedded embed.FS

// contentTypes are the content types by extension. The table of package mime depends on the system,
// and browsers refuse scripts of a different type.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// assets are the files of the page. They are served from one folder whose name is a hash of them
// all, so that scripts can import "./chart.js" and no browser mixes two versions.
type assets struct {
	version string
	index   []byte
	files   map[string]asset
}

type asset struct {
	kind    string
	content []byte
}

func loadAssets(title, admin string) *assets {
	a := &assets{files: map[string]asset{}}
	entries, err := embedded.ReadDir("assets")
	if err != nil {
		panic(err) // impossible: the files are embedded
	}
	var all []byte
	for _, e := range entries {
		content, err := embedded.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err)
		}
		a.files[e.Name()] = asset{kind: contentTypes[path.Ext(e.Name())], content: content}
		all = append(append(all, e.Name()...), content...)
	}
	a.version = shortHash(all)
	words := strings.NewReplacer("{{title}}", html.EscapeString(title), "{{assets}}", "assets/"+a.version, "{{admin}}", html.EscapeString(admin))
	a.index = []byte(words.Replace(string(a.files["index.html"].content)))
	delete(a.files, "index.html")
	return a
}
