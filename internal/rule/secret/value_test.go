package secret_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"sallyport/internal/rule/secret"
)

func TestAValueIsNeverPrinted(t *testing.T) {
	const plain = "open-sesame-42"
	v := secret.Hold(plain)
	type hidden struct {
		name string
		v    secret.Value
	}
	type open struct {
		V secret.Value
		P *secret.Value
	}
	holders := []any{v, &v, hidden{"x", v}, &hidden{"x", v}, open{v, &v}, []secret.Value{v}, map[string]secret.Value{"k": v}, []any{hidden{"y", v}}}
	var out strings.Builder
	for _, h := range holders {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%t", "%20v", "%p"} {
			fmt.Fprintf(&out, verb+"\n", h)
		}
		if b, err := json.Marshal(h); err != nil {
			t.Error(err)
		} else {
			out.Write(b)
		}
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("m", "v", v, "p", &v, "open", open{v, &v}, "hidden", hidden{"x", v}, "group", slog.GroupValue(slog.Any("in", v)))
	}
	out.Write(log.Bytes())
	out.WriteString(fmt.Errorf("with %v: %w", v, errors.New(v.String())).Error())
	for _, form := range []string{plain, fmt.Sprintf("%x", plain), fmt.Sprintf("%X", plain), fmt.Sprint([]byte(plain))} {
		if strings.Contains(out.String(), form) {
			t.Errorf("printed as %s", form)
		}
	}
	if v.Reveal() != plain || v.Empty() || !(secret.Value{}).Empty() || !v.Equal(secret.Hold(plain)) || v.Equal(secret.Value{}) {
		t.Error("the value does not hold what it was given")
	}
}

func TestAConfigurationCanHoldAValue(t *testing.T) {
	var c struct{ Token secret.Value }
	if err := json.Unmarshal([]byte(`{"Token":"abc"}`), &c); err != nil || c.Token.Reveal() != "abc" {
		t.Fatalf("%q %v", c.Token.Reveal(), err)
	}
}
