package api

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
)

// names says of every kind of name whether a text is one.
var names = map[string]func(string) error{
	"change":       func(s string) error { _, err := id.ParseChange(s); return err },
	"approval":     func(s string) error { _, err := id.ParseApproval(s); return err },
	"checkpoint":   func(s string) error { _, err := id.ParseCheckpoint(s); return err },
	"session":      func(s string) error { _, err := id.ParseSession(s); return err },
	"group":        checkTalk,
	"channel":      CheckChannel,
	"conversation": func(s string) error { _, err := id.ParseConversation(s); return err },
	"person":       checkPerson,
	"question": func(s string) error { // an approval, a change with one, or a question about a stranger or a place
		var err error
		switch id.KindOf(s) {
		case "change":
			_, err = id.ParseChange(s)
		case "question":
			_, err = id.ParseQuestion(s)
		default:
			_, err = id.ParseApproval(s)
		}
		return err
	},
	"message": func(s string) error { _, err := id.ParseMessage(s); return err },
	"task":    func(s string) error { _, err := id.ParseTask(s); return err },
	"card":    func(s string) error { _, err := id.ParseQuestion(s); return err },
	"chat": func(s string) error { // a chat, or a session of one
		if id.KindOf(s) == "chat" {
			_, err := id.ParseChat(s)
			return err
		}
		_, err := id.ParseSession(s)
		return err
	},
	"work": func(s string) error { // a change, or a session of one
		if _, err := id.ParseChange(s); err == nil {
			return nil
		}
		_, err := id.ParseSession(s)
		return err
	},
}

// Name is the name in the verb's path that in, what is said of it, has; "" if it has none.
func (s Spec) Name(in any) string {
	v := reflect.ValueOf(in)
	if v.Kind() == reflect.String {
		return v.String()
	}
	for _, f := range fields(v.Type()) {
		if inPath(f) {
			return v.FieldByIndex(f.Index).String()
		}
	}
	return ""
}

// Address is where the verb is asked with in, below the host. Whatever of in is not there is the body.
func (s Spec) Address(in any) string {
	address := s.Path
	if word := s.about(); word != "" {
		address = strings.Replace(address, "{"+word+"}", url.PathEscape(s.Name(in)), 1)
	}
	if q := s.query(reflect.ValueOf(in)); len(q) > 0 {
		address += "?" + q.Encode()
	}
	return address
}

// Body is what crosses as a JSON document when the verb is asked with in; nil if nothing does.
func (s Spec) Body(in any) ([]byte, error) {
	if !s.body() {
		return nil, nil
	}
	return json.Marshal(in)
}

// query has every field that crosses there and is not empty.
func (s Spec) query(in reflect.Value) url.Values {
	q := url.Values{}
	if s.body() {
		return q
	}
	for _, f := range fields(in.Type()) {
		v := in.FieldByIndex(f.Index)
		if inPath(f) || v.IsZero() {
			continue
		}
		switch v.Kind() {
		case reflect.Slice:
			q[key(f)] = v.Interface().([]string)
		case reflect.Bool:
			q.Set(key(f), "1")
		case reflect.String:
			q.Set(key(f), v.String())
		default:
			q.Set(key(f), strconv.FormatInt(v.Int(), 10))
		}
	}
	return q
}

// key is a field's name, in a query as in JSON.
func key(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Read reads what a request says of the verb into in, a pointer to it. What is not understood is refused; only a verb that
// answers any version passes over a parameter that it does not know.
func (s Spec) Read(r *http.Request, in any) error {
	v := reflect.ValueOf(in).Elem()
	if word := s.about(); word != "" {
		if err := s.readName(v, word, r.PathValue(word)); err != nil {
			return err
		}
	}
	if err := s.readQuery(r, v); err != nil {
		return err
	}
	if s.Silent && r.ContentLength == 0 || !s.body() {
		return nil
	}
	return readBody(r, in)
}

func (s Spec) readName(in reflect.Value, kind, name string) error {
	if err := names[kind](name); err != nil {
		return err
	}
	if in.Kind() == reflect.String {
		in.SetString(name)
		return nil
	}
	for _, f := range fields(in.Type()) {
		if inPath(f) {
			in.FieldByIndex(f.Index).SetString(name)
		}
	}
	return nil
}

func (s Spec) readQuery(r *http.Request, in reflect.Value) error {
	q := r.URL.Query()
	var known []string
	if !s.body() {
		for _, f := range fields(in.Type()) {
			if inPath(f) {
				continue
			}
			known = append(known, key(f))
			if err := readParameter(in.FieldByIndex(f.Index), f, q[key(f)]); err != nil {
				return err
			}
		}
	}
	for name := range q {
		if !slices.Contains(known, name) && !s.AnyVersion {
			return problem.Errorf(problem.Usage, "sallyport --help", "%q is not a parameter of %s", name, r.URL.Path)
		}
	}
	return nil
}

// readParameter reads what a query says under one name; an empty word is none.
func readParameter(into reflect.Value, f reflect.StructField, said []string) error {
	if into.Kind() == reflect.Slice {
		into.Set(reflect.ValueOf(said))
		return nil
	}
	if len(said) == 0 || said[0] == "" {
		return nil
	}
	if kind := f.Tag.Get("is"); kind != "" {
		if err := names[kind](said[0]); err != nil {
			return err
		}
	}
	if into.Kind() == reflect.String {
		into.SetString(said[0])
		return nil
	}
	n, err := strconv.ParseInt(said[0], 10, 64)
	if err != nil || n < 0 {
		return problem.Errorf(problem.Usage, "sallyport --help", "%s=%q is not a number from 0", key(f), said[0])
	}
	if into.Kind() == reflect.Bool {
		into.SetBool(n != 0)
		return nil
	}
	into.SetInt(n)
	return nil
}

// readBody decodes exactly one JSON document with known fields.
func readBody(r *http.Request, in any) error {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	err := dec.Decode(in)
	if err == nil {
		if _, extra := dec.Token(); !errors.Is(extra, io.EOF) {
			err = errors.New("more than one document")
		}
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return problem.Errorf(problem.Usage, "sallyport run --help", "the request is larger than %d bytes", large.Limit)
	case err != nil:
		return problem.Errorf(problem.Usage, "sallyport --help", "the request cannot be read: %w", err)
	}
	return nil
}
