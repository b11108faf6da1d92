package fleet

import (
	"crypto/sha1" // Redis identifies scripts by it
	"embed"
	"encoding/hex"
	"slices"

	"github.com/weir-go/weir/fleet/internal/pipeline"
)

//go:embed scripts/*.lua
var scripts embed.FS

// script is the text of a script and its SHA-1, by which Redis knows it.
type script struct {
	text, sha string
}

var (
	resetScript    = newScript("reset")
	setRateScript  = newScript("setrate")
	throttleScript = newScript("throttle")
)

// decision returns a script that decides about each of its keys separately, and replies with the
// given number of values per key.
func (s *script) decision(answers int) *pipeline.Decision {
	return &pipeline.Decision{Text: s.text, SHA: s.sha, Answers: answers}
}

// newScript joins Lua files into one script.
func newScript(files ...string) *script {
	var text []byte
	for _, name := range files {
		part, err := scripts.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			panic(err) // the files are embedded
		}
		text = append(append(text, part...), '\n')
	}
	sum := sha1.Sum(text)
	return &script{text: string(text), sha: hex.EncodeToString(sum[:])}
}

// newDecision returns the script that decides about some limits: begin.lua, one file per kind of
// limit, and decide.lua.
func newDecision(limits []limitSpec) *script {
	files := []string{"begin"}
	for _, limit := range limits {
		if !slices.Contains(files, limit.script) {
			files = append(files, limit.script)
		}
	}
	return newScript(append(files, "decide")...)
}
