package dashboard

import "unicode/utf8"

// noticer is a source that sometimes has a text for the people who operate the program, such as a
// weirconfig.Set whose file was refused.
type noticer interface {
	Notice() string
}

// The largest number of notices that the page shows, and the largest number of bytes of a notice.
const (
	maxNotices = 8
	maxNotice  = 2000
)

// recordNotice records the notice of a source, if it has one.
func (x *extras) recordNotice(source noticer) {
	text := source.Notice()
	if text == "" {
		return
	}
	if len(text) > maxNotice {
		end := maxNotice
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.recorded != nil && len(x.notices) < maxNotices {
		x.notices = append(x.notices, text)
	}
}
