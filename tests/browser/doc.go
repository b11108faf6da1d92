// Package browser holds tests of the page that the package dashboard serves, in a
// real browser: what is seen and heard, with the keyboard, on a small screen, in
// light and in dark, with a thousand sources, and when the connection is lost.
//
// The tests need chromium, and axe-core in node_modules; `make deps` brings
// both. Screenshots to look at are saved by
//
//	go test -run Screenshots -screenshots FOLDER
package browser
