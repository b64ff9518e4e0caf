package secret

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

const shown = "[secret]"

// Value holds a secret that no print, log, JSON or text form shows: each of them says [secret].
// Only Reveal gives the plain text. The zero Value holds nothing.
//
// The plain text stands behind a pointer: fmt cannot call the methods of an unexported field, and
// would print a string there; of a pointer it prints the address.
type Value struct {
	plain *string
}

// Hold returns a Value of plain.
func Hold(plain string) Value { return Value{plain: &plain} }

// Reveal returns the plain text; "" if there is none.
func (v Value) Reveal() string {
	if v.plain == nil {
		return ""
	}
	return *v.plain
}

// Empty says whether there is nothing to hide.
func (v Value) Empty() bool { return v.Reveal() == "" }

// Equal compares in a time that does not depend on where the two differ.
func (v Value) Equal(other Value) bool {
	return subtle.ConstantTimeCompare([]byte(v.Reveal()), []byte(other.Reveal())) == 1
}

func (Value) String() string               { return shown }
func (Value) GoString() string             { return shown }
func (Value) LogValue() slog.Value         { return slog.StringValue(shown) }
func (Value) MarshalText() ([]byte, error) { return []byte(shown), nil }
func (Value) MarshalJSON() ([]byte, error) { return []byte(`"` + shown + `"`), nil }

// Format answers every verb and flag.
func (Value) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, shown) }

// UnmarshalText lets a configuration hold a Value.
func (v *Value) UnmarshalText(text []byte) error {
	*v = Hold(string(text))
	return nil
}
