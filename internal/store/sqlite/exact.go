package sqlite

import (
	"fmt"
	"reflect"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/problem"
)

// exact refuses a value with text that JSON would change: what is later acted on must come
// back byte for byte, and a path that is not UTF-8 would come back as another path.
func exact(what string, v any) error {
	if at, ok := inexact(reflect.ValueOf(v)); !ok {
		return problem.Errorf(problem.Refused, "", "%s cannot be kept exactly: %s is not UTF-8", what, at)
	}
	return nil
}

var clockType = reflect.TypeFor[time.Time]()

// inexact returns where the first bad text stands, and the text; true if there is none.
func inexact(v reflect.Value) (at string, ok bool) {
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); !utf8.ValidString(s) {
			return fmt.Sprintf(" %q", s), false
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return inexact(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return "", true // base64 in JSON
		}
		for i := range v.Len() {
			if at, ok := inexact(v.Index(i)); !ok {
				return fmt.Sprintf("[%d]%s", i, at), false
			}
		}
	case reflect.Struct:
		if v.Type() == clockType {
			return "", true
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() {
				if at, ok := inexact(f); !ok {
					return "." + v.Type().Field(i).Name + at, false
				}
			}
		}
	}
	return "", true
}
