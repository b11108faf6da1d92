// Command nothing is the program that the others are compared with.
package main

import "fmt"

func main() { fmt.Println("hello") }
