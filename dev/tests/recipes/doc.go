// Package recipes holds the code that docs/recipes.md quotes, so that all of it is compiled. The
// tests check what the page says.
package recipes
