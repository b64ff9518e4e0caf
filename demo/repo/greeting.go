// Package greeting greets.
package greeting

// Hello returns a greeting for name, or for the world if name is empty.
func Hello(name string) string {
	return "Hello, " + name + "!"
}
