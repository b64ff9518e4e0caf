package channel

import "strings"

// Counted reports whether the first of two ids is the smaller number, as Can.Before of platforms that count their messages. Numbers may have
// parts behind dots, such as a time; what is no such number is before nothing.
func Counted(first, second string) bool {
	a, b := strings.Split(first, "."), strings.Split(second, ".")
	if len(a) != len(b) {
		return false
	}
	order := 0
	for i := range a {
		if a[i] == "" || b[i] == "" || strings.Trim(a[i]+b[i], "0123456789") != "" {
			return false
		}
		x, y := strings.TrimLeft(a[i], "0"), strings.TrimLeft(b[i], "0")
		switch {
		case order != 0:
		case len(x) != len(y):
			order = len(x) - len(y)
		default:
			order = strings.Compare(x, y)
		}
	}
	return order < 0
}
