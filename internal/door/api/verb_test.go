package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"sallyport/internal/base/problem"
)

// samples are names of every kind that a path or a query may ask for.
var samples = map[string]string{
	"change": "chg-00000001", "approval": "apr-00000001", "checkpoint": "ckpt-001-abcdef01", "session": "sh-1a2b3",
	"question": "apr-00000001", "work": "sh-1a2b3", "message": "msg-00000001", "task": "tsk-00000001", "chat": "cht-00000001", "card": "qst-00000001", "group": "echo", "person": "psn-00000001",
	"channel": "libera", "conversation": "cnv-00000001",
}

// fill says something in every field of what is said of a verb.
func fill(v reflect.Value, s Spec) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(samples[s.about()])
	case reflect.Struct:
		for _, f := range fields(v.Type()) {
			into := v.FieldByIndex(f.Index)
			switch kind := f.Tag.Get("is"); {
			case inPath(f):
				into.SetString(samples[s.about()])
			case kind != "":
				into.SetString(samples[kind])
			default:
				say(into)
			}
		}
	}
}

func say(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("a b/ü&c=1")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Struct:
		for _, f := range fields(v.Type()) {
			say(v.FieldByIndex(f.Index))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		say(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		say(v.Index(0))
		say(v.Index(1))
	case reflect.Map:
		one := reflect.New(v.Type().Elem()).Elem()
		say(one)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("NAME"), one)
	default:
		panic("nothing is known to say in a " + v.Type().String())
	}
}

// arrive reads what a request says of a verb as a door does that serves it.
func arrive(t *testing.T, s Spec, address string, body []byte) (in any, err error) {
	t.Helper()
	into := reflect.New(s.In)
	mux := http.NewServeMux()
	reached := false
	mux.HandleFunc(s.Pattern(), func(_ http.ResponseWriter, r *http.Request) {
		reached, err = true, s.Read(r, into.Interface())
	})
	mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(s.Method, address, bytes.NewReader(body)))
	if !reached {
		t.Fatalf("%s does not reach %s", address, s.Pattern())
	}
	return into.Elem().Interface(), err
}

func TestWhatIsSaidOfAVerbArrivesAsSaid(t *testing.T) {
	for _, s := range Verbs() {
		for _, full := range []bool{true, false} {
			in := reflect.New(s.In).Elem()
			fill(in, s)
			if !full { // nothing but the name in the path
				name := s.Name(in.Interface())
				in.SetZero()
				if s.about() != "" {
					if err := s.readName(in, s.about(), name); err != nil {
						t.Fatal(err)
					}
				}
			}
			body, err := s.Body(in.Interface())
			if err != nil {
				t.Fatal(err)
			}
			got, err := arrive(t, s, s.Address(in.Interface()), body)
			if err != nil || !reflect.DeepEqual(got, in.Interface()) {
				t.Errorf("%s: said %+v, arrived %+v, %v", s.Pattern(), in, got, err)
			}
		}
	}
}

func TestWhatAVerbDoesNotKnowIsRefused(t *testing.T) {
	for _, s := range Verbs() {
		in := reflect.New(s.In).Elem()
		fill(in, s)
		address := s.Address(in.Interface())
		body, err := s.Body(in.Interface())
		if err != nil {
			t.Fatal(err)
		}
		refused := func(what, address string, body []byte) {
			if _, err := arrive(t, s, address, body); problem.KindOf(err) != problem.Usage || problem.Of(err).Next == "" {
				t.Errorf("%s with %s: %v", s.Pattern(), what, err)
			}
		}

		more := "?color=red"
		if strings.Contains(address, "?") {
			more = "&color=red"
		}
		if _, err := arrive(t, s, address+more, body); s.AnyVersion && err != nil {
			t.Errorf("%s, which answers any version: %v", s.Pattern(), err)
		}
		if !s.AnyVersion {
			refused("an unknown parameter", address+more, body)
		}
		if s.about() != "" {
			refused("another kind of name", strings.Replace(address, samples[s.about()], "lnd-0000_001", 1), body)
		}
		if body != nil {
			refused("an unknown field", address, append([]byte(`{"color":"red",`), body[1:]...))
			refused("a name from the path", address, append([]byte(`{"Of":"chg-00000002",`), body[1:]...))
			refused("two documents", address, append(body, body...))
			if _, err := arrive(t, s, address, nil); !s.Silent {
				refused("no document", address, nil)
			} else if err != nil {
				t.Errorf("%s as an earlier client says it: %v", s.Pattern(), err)
			}
		}
	}
}

func TestAParameterOfAWrongKindIsRefused(t *testing.T) {
	for _, s := range Verbs() {
		if s.body() || s.In.Kind() != reflect.Struct {
			continue
		}
		in := reflect.New(s.In).Elem()
		fill(in, s)
		path, _, _ := strings.Cut(s.Address(in.Interface()), "?")
		for _, f := range fields(s.In) {
			wrong := "-1"
			if f.Tag.Get("is") != "" {
				wrong = "lnd-0000_001"
			} else if kind := f.Type.Kind(); kind == reflect.String || kind == reflect.Slice {
				continue // any text
			}
			if _, err := arrive(t, s, path+"?"+key(f)+"="+wrong, nil); problem.KindOf(err) != problem.Usage {
				t.Errorf("%s?%s=%s: %v", s.Pattern(), key(f), wrong, err)
			}
		}
	}
}

// A verb that the table misdescribes would be asked where nobody answers, or lose what is said.
func TestTheTableOfVerbsIsSound(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Verbs() {
		named := s.In.Kind() == reflect.String
		for _, f := range fields(s.In) {
			named = named || inPath(f)
			if inPath(f) != (f.Tag.Get("json") == "-") || !inPath(f) && key(f) == "" {
				t.Errorf("%s: the field %s has the tags %s", s.Pattern(), f.Name, f.Tag)
			}
			if kind := f.Tag.Get("is"); kind != "" && names[kind] == nil {
				t.Errorf("%s: nobody knows what a %q is", s.Pattern(), kind)
			}
		}
		switch {
		case seen[s.Pattern()]:
			t.Errorf("%s stands there twice", s.Pattern())
		case !strings.HasPrefix(s.Path, "/v1/"):
			t.Errorf("%s lies below no version", s.Pattern())
		case named != (s.about() != "") || named && names[s.about()] == nil:
			t.Errorf("%s is asked with %s", s.Pattern(), s.In)
		case (s.Kind == "") != (s.Out != nil && s.Within > 0):
			t.Errorf("%s is answered with %v, within %s", s.Pattern(), s.Out, s.Within)
		case s.Again != "" && (!strings.HasPrefix(s.Again, "sallyport ") || !strings.HasSuffix(s.Again, " ")):
			t.Errorf("%s is said again by %q", s.Pattern(), s.Again)
		}
		seen[s.Pattern()] = true

		if s.Out != nil {
			if _, err := json.Marshal(reflect.Zero(s.Out).Interface()); err != nil {
				t.Errorf("%s: %v", s.Pattern(), err)
			}
		}
	}
}

// What a person types for a name may be anything: it never becomes another address.
func TestANameOfAnyLettersStaysOneName(t *testing.T) {
	for _, name := range []string{"a/b", "../audit", "x?y=1", "x#y", "x%2fy", "ü "} {
		_, err := arrive(t, ChangeShow.Spec, ChangeShow.Address(name), nil)
		if problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestAVerbThatStartsProgramsOrLooksAtAllThereIsIsWaitedForLonger(t *testing.T) {
	for _, s := range []Spec{AgentList.Spec, AgentTry.Spec, StorageShow.Spec, StorageCollect.Spec} {
		if s.Within <= withinDefault {
			t.Errorf("%s is waited for %s", s.Pattern(), s.Within)
		}
	}
}
