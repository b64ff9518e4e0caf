// Package apitest has what crosses the socket in each version of the wire, as it was recorded when that version was this program's.
package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/door/api"
)

// leaving is what no recording behind a version has any more: a verb by its pattern, or a field as Run.Strategy. The version after it still
// understands that, for clients of one release back; the one after that need not.
var leaving = map[string]int{}

// Recording is what one version says.
type Recording struct {
	Version int             `json:"version"`
	Headers []string        `json:"headers"` // who speaks, and why a stream broke
	Problem json.RawMessage `json:"problem"` // every answer that is no success
	Verbs   []Verb          `json:"verbs"`
}

// Verb is one that was asked and answered.
type Verb struct {
	Asked  string          `json:"asked"`                 // method and path of the table
	Any    bool            `json:"any_version,omitempty"` // it answers clients of any version
	Kind   string          `json:"kind,omitempty"`        // of a stream
	Full   Request         `json:"full"`                  // a word in every field
	Least  Request         `json:"least"`                 // nothing but the name in the path
	Answer json.RawMessage `json:"answer,omitempty"`      // the document, or one line of a stream of documents
}

// Request is one as a client sent it.
type Request struct {
	Address string          `json:"address"`
	Body    json.RawMessage `json:"body,omitempty"`
}

// String is a request on one line.
func (r Request) String() string {
	var body bytes.Buffer
	if len(r.Body) == 0 || json.Compact(&body, r.Body) != nil {
		return r.Address
	}
	return r.Address + " " + body.String()
}

// lines are the streams of documents, with what a line of theirs is.
var lines = map[string]reflect.Type{
	api.ChangeWatch.Pattern(): reflect.TypeFor[api.Notice](),
	api.ChatWatch.Pattern():   reflect.TypeFor[api.ChatLine](),
	api.SecretScan.Pattern():  reflect.TypeFor[api.SecretLine](),
}

// Out is what answers a verb: its document, or one line of its stream; nil if that is neither.
func Out(s api.Spec) reflect.Type {
	if s.Kind != "" {
		return lines[s.Pattern()]
	}
	return s.Out
}

// Recorded returns the recording of every version that there was, the oldest first.
func Recorded(t *testing.T) (all []Recording) {
	t.Helper()
	for version := 1; version <= api.Version; version++ {
		raw, err := os.ReadFile(file(version))
		if err != nil {
			t.Fatalf("version %d of the wire is not recorded: make docs (%v)", version, err)
		}
		var r Recording
		if err := json.Unmarshal(raw, &r); err != nil || r.Version != version || len(r.Verbs) < 40 {
			t.Fatalf("%s: %v, %d verbs of version %d", file(version), err, len(r.Verbs), r.Version)
		}
		all = append(all, r)
	}
	return all
}

// file is where the recording of a version lies: beside this one.
func file(version int) string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "testdata", fmt.Sprintf("version-%d.json", version))
}

// Spoken are the verbs of a recording that are still to be understood: all of this version and the one before, and of older ones those that
// answer any.
func (r Recording) Spoken() []Verb {
	if _, ok := api.Common(r.Version); ok {
		return r.Verbs
	}
	return slices.DeleteFunc(slices.Clone(r.Verbs), func(v Verb) bool { return !v.Any })
}

// Now records what this program says.
func Now() (Recording, error) {
	f := &filler{}
	broke := api.Problem{}
	f.fill(reflect.ValueOf(&broke).Elem())
	text, err := json.Marshal(broke)
	r := Recording{Version: api.Version, Headers: []string{api.HeaderVersion, api.HeaderBuild, api.TrailerProblem}, Problem: text}
	for _, s := range api.Verbs() {
		if gone(s.Pattern()) || err != nil {
			continue
		}
		f.n = 0
		full, least := f.said(s, true), f.said(s, false)
		v := Verb{Asked: s.Pattern(), Any: s.AnyVersion, Kind: s.Kind}
		if v.Full, err = Ask(s, full); err != nil {
			return r, fmt.Errorf("%s: %w", v.Asked, err)
		}
		if v.Least, err = Ask(s, least); err != nil {
			return r, fmt.Errorf("%s: %w", v.Asked, err)
		}
		if t := Out(s); t != nil {
			out := reflect.New(t).Elem()
			f.fill(out)
			v.Answer, err = json.Marshal(out.Interface())
		}
		r.Verbs = append(r.Verbs, v)
	}
	return r, err
}

func gone(what string) bool {
	last, ok := leaving[what]
	return ok && last < api.Version
}

// Ask is how a client of this program asks a verb with in.
func Ask(s api.Spec, in any) (Request, error) {
	body, err := s.Body(in)
	return Request{s.Address(in), body}, err
}

// Read reads a request as a door of this program does.
func Read(s api.Spec, asked Request) (in any, err error) {
	into := reflect.New(s.In)
	mux := http.NewServeMux()
	err = fmt.Errorf("%s does not lead to it", asked.Address)
	mux.HandleFunc(s.Pattern(), func(_ http.ResponseWriter, r *http.Request) { err = s.Read(r, into.Interface()) })
	mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(s.Method, asked.Address, bytes.NewReader(asked.Body)))
	return into.Elem().Interface(), err
}

// Faults names what of a recording this program does not understand any more, or would not say as it was recorded.
func (r Recording) Faults(table []api.Spec) (faults []string) {
	fault := func(format string, a ...any) {
		faults = append(faults, fmt.Sprintf("version %d: ", r.Version)+fmt.Sprintf(format, a...))
	}
	for i, name := range []string{api.HeaderVersion, api.HeaderBuild, api.TrailerProblem} {
		if r.Headers[i] != name {
			fault("the header %s is now %s", r.Headers[i], name)
		}
	}
	if err := told(reflect.TypeFor[api.Problem](), r.Problem); err != nil {
		fault("a problem: %v", err)
	}
	for _, v := range r.Spoken() {
		at := slices.IndexFunc(table, func(s api.Spec) bool { return s.Pattern() == v.Asked })
		if at < 0 {
			fault("%s is gone", v.Asked)
			continue
		}
		s := table[at]
		if v.Any && !s.AnyVersion {
			fault("%s does not answer any version any more", v.Asked)
		}
		if v.Kind != s.Kind {
			fault("%s is answered with %q, and no longer with %q", v.Asked, s.Kind, v.Kind)
		}
		for _, asked := range []Request{v.Full, v.Least} {
			if err := understood(s, asked); err != nil {
				fault("%s, asked as %s: %v", v.Asked, asked, err)
			}
		}
		if v.Answer == nil {
			continue
		}
		if out := Out(s); out == nil {
			fault("%s is answered with no document any more", v.Asked)
		} else if err := told(out, v.Answer); err != nil {
			fault("what answers %s: %v", v.Asked, err)
		}
	}
	return faults
}

// understood reports what of a request is lost, and what would be said beside it to a daemon that does not know that.
func understood(s api.Spec, asked Request) error {
	in, err := Read(s, asked)
	if err != nil {
		return err
	}
	again, err := Ask(s, in)
	if err != nil {
		return err
	}
	if again.Address != asked.Address || !reflect.DeepEqual(document(again.Body), document(asked.Body)) {
		return fmt.Errorf("it is understood as %s", again)
	}
	return nil
}

// told reports what of an answer a client does not read any more.
func told(t reflect.Type, answer json.RawMessage) error {
	into := reflect.New(t)
	if err := json.Unmarshal(answer, into.Interface()); err != nil {
		return err
	}
	again, err := json.Marshal(into.Interface())
	if err != nil {
		return err
	}
	return within("", document(answer), document(again))
}

// within reports where a document has something that another has not, or has otherwise.
func within(place string, has, other any) error {
	switch has := has.(type) {
	case map[string]any:
		o, ok := other.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is read as %v", place, other)
		}
		for key, v := range has {
			if _, ok := o[key]; !ok {
				return fmt.Errorf("%s.%s is not read any more", place, key)
			}
			if err := within(place+"."+key, v, o[key]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		o, ok := other.([]any)
		if !ok || len(o) != len(has) {
			return fmt.Errorf("%s is read as %v", place, other)
		}
		for i := range has {
			if err := within(place+"[]", has[i], o[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if !reflect.DeepEqual(has, other) {
		return fmt.Errorf("%s: %v is read as %v", place, has, other)
	}
	return nil
}

func document(raw []byte) (v any) {
	_ = json.Unmarshal(raw, &v) // nil where there is none
	return v
}

// filler says something in every field. Each number is another one.
type filler struct{ n int64 }

// samples are names of every kind that a path or a query asks for.
var samples = map[string]string{
	"change": "chg-00000001", "approval": "apr-00000001", "checkpoint": "ckpt-001-abcdef01", "session": "sh-1a2b3", "question": "apr-00000001",
	"work": "sh-1a2b3", "message": "msg-00000001", "task": "tsk-00000001", "chat": "cht-00000001", "card": "qst-00000001", "group": "echo",
	"person": "psn-00000001", "channel": "libera", "conversation": "cnv-00000001",
}

// said is what is said of a verb: all that there is to say, or nothing but the name in the path.
func (f *filler) said(s api.Spec, full bool) any {
	in := reflect.New(s.In).Elem()
	_, after, _ := strings.Cut(s.Path, "{")
	about, _, _ := strings.Cut(after, "}")
	if in.Kind() == reflect.String {
		in.SetString(samples[about])
		return in.Interface()
	}
	if full {
		f.fill(in)
	}
	for _, field := range reflect.VisibleFields(s.In) {
		if field.Tag.Get("path") != "" {
			in.FieldByIndex(field.Index).SetString(samples[about])
		} else if kind := field.Tag.Get("is"); kind != "" && full {
			in.FieldByIndex(field.Index).SetString(samples[kind])
		}
	}
	return in.Interface()
}

func (f *filler) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("word")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		f.n++
		v.SetInt(f.n)
	case reflect.Uint8, reflect.Uint16:
		f.n++
		v.SetUint(uint64(f.n % 256))
	case reflect.Float64:
		f.n++
		v.SetFloat(float64(f.n) + 0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(v.Index(0))
	case reflect.Map:
		one := reflect.New(v.Type().Elem()).Elem()
		f.fill(one)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("NAME"), one)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.UnixMilli(1_700_000_000_123).UTC()))
			return
		}
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && !gone(v.Type().Name()+"."+field.Name) {
				f.fill(v.Field(i))
			}
		}
	default:
		panic("nothing is known to say in a " + v.Type().String())
	}
}
