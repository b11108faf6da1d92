package main

import (
	"fmt"
	"regexp"
	"strings"
)

// finding is a piece of text that is hard to read.
type finding struct {
	file string
	line int
	kind string
	text string
}

func (p finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", p.file, p.line, p.kind, shorten(p.text))
}

func shorten(text string) string {
	if runes := []rune(text); len(runes) > 120 {
		return string(runes[:120]) + "…"
	}
	return text
}

// kind is one way in which a line is hard to read. The name says what to write instead.
type kind struct {
	name    string
	pattern *regexp.Regexp
	unless  *regexp.Regexp // if not nil, applied to the text after the match
}

const longSentence = "sentence over 40 words: split it"

// maxWords is the highest number of words in a sentence.
const maxWords = 40

const (
	nouns = `(?:call|key|breaker|decision|rule|member|token|client|processor|caller|goroutine|bucket|shard|gate|host|` +
		`method|service|node|round|batch|limiter|waiter|entry|request|series|evaluation|scrape)`
	amounts = `(?:\d\S*|ns|bytes?|kB|one|once|two|adds?|readings?|allocations?|breaker|limiter|gate|quota|lock|gauge|` +
		`histogram|goroutine|step)`
	beforeWho = `(?:^|[.;:(,]\s+|\b(?:for|by|to|of|and|or|that|then|but|since|so|with|from|makes?|lets?)\s+)`
)

var kinds = []kind{
	{
		name:    `"who …" as a subject: name the caller, the user or the client`,
		pattern: regexp.MustCompile(beforeWho + `(?:[Ww]ho|[Ww]hoever)\s+[a-z]+`),
		unless:  regexp.MustCompile(`\?`),
	},
	{
		name:    `"what …" as a subject: name the thing`,
		pattern: regexp.MustCompile(`(?:^|[.;:]\s+)What\s+(?:is|are|was|were|has|a|the|comes?|counts?|no|none|one)\b`),
		unless:  regexp.MustCompile(`\?`),
	},
	{
		name:    `"a call" after an amount: write "per call"`,
		pattern: regexp.MustCompile(`\b` + amounts + `\s+a\s+` + nouns + `\b`),
	},
	{
		name: `a vague pronoun or idiom: name the thing`,
		pattern: regexp.MustCompile(`\b(?:[Ss]ome|[Aa]ny|[Nn]o)body\b|\b(?:theirs|ours)\b|\bof (?:yours)\b|\bits like\b|` +
			`\bnothing but\b|\bfor good\b|\bof no use\b`),
	},
	{
		name: `a figure of speech: use the technical word`,
		pattern: regexp.MustCompile(`\b(?:mercy|hush(?:ed)?|calm|heir|purse|meddle|seated|census|crowd(?:s|ed)?|hasty|` +
			`in vain|voice|wash(?:es|ed)? out|stands? (?:in|there|beside)|dearer|march in step)\b`),
	},
}

// scan finds the places in the blocks of a file.
func scan(file string, blocks []block) (places []finding) {
	for _, b := range blocks {
		for i, line := range b.lines {
			for _, k := range kinds {
				if k.matches(line) {
					places = append(places, finding{file, b.first + i, k.name, line})
				}
			}
		}
		for _, sentence := range sentences(b.lines) {
			if words(sentence) > maxWords {
				places = append(places, finding{file, b.first, longSentence, sentence})
			}
		}
	}
	return places
}

func (k kind) matches(line string) bool {
	at := k.pattern.FindStringIndex(line)
	return len(at) > 0 && (k.unless == nil || !k.unless.MatchString(line[at[1]:]))
}

var (
	endOfSentence = regexp.MustCompile(`[.!?]\s+`)
	word          = regexp.MustCompile(`[A-Za-z']+`)
	address       = regexp.MustCompile(`https?://\S+`)
)

// sentences joins the lines and splits them after each period. A row of a table is no sentence.
func sentences(lines []string) []string {
	text := strings.Join(lines, " ")
	if strings.Contains(text, "|") {
		return nil
	}
	return endOfSentence.Split(text, -1)
}

// words counts the words of a sentence. Parts of an address are no words.
func words(sentence string) int {
	return len(word.FindAllString(address.ReplaceAllString(sentence, ""), -1))
}
