// Package browser tests the page of package dashboard in a real browser: what users see and hear,
// with the keyboard, on a small screen, in light and dark mode, with a thousand sources, and
// without a connection.
//
// The tests need chromium, and axe-core in node_modules. `make deps` installs both. To save
// screenshots:
//
//	go test -run Screenshots -screenshots FOLDER
package browser
