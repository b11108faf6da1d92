package fleet

import (
	"crypto/sha1" // the name that Redis gives to a script
	"embed"
	"encoding/hex"

	"github.com/weir-go/weir/fleet/internal/pipeline"
)

// The scripts. A decision is made of a beginning, the kinds of limits that it is about, and an end.
//
//go:embed scripts/*.lua
var scripts embed.FS

// script is a script, and what Redis calls it.
type script struct {
	text, sha string
}

var (
	resetScript    = newScript("reset")
	setRateScript  = newScript("setrate")
	throttleScript = newScript("throttle")
)

// decision is the script where it decides about each of its keys by itself, with so many numbers for each.
func (s *script) decision(answers int) *pipeline.Decision {
	return &pipeline.Decision{Text: s.text, SHA: s.sha, Answers: answers}
}

// newScript makes one script of files.
func newScript(files ...string) *script {
	var text []byte
	for _, name := range files {
		part, err := scripts.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			panic(err) // it is embedded
		}
		text = append(append(text, part...), '\n')
	}
	sum := sha1.Sum(text)
	return &script{text: string(text), sha: hex.EncodeToString(sum[:])}
}

// newDecision makes the script that decides about limits of these kinds.
func newDecision(kinds ...string) *script {
	files := []string{"begin"}
	known := map[string]bool{}
	for _, kind := range kinds {
		if !known[kind] {
			known[kind] = true
			files = append(files, kind)
		}
	}
	return newScript(append(files, "decide")...)
}
