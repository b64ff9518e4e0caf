package api

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Verb is one thing that can be asked of a daemon: In is what is said of it, Out the one document that answers it.
type Verb[In, Out any] struct{ Spec }

// Stream is a verb that is answered with something else than one document: bytes as they are made, events, a terminal.
type Stream[In any] struct{ Spec }

// Spec is where a verb is asked and how, the same for whoever asks and whoever answers.
type Spec struct {
	Method string
	Path   string       // below the host; it has at most one name in it, whose word in braces says of what kind that is
	In     reflect.Type // a string is the name in Path; of a struct one field may be it
	Out    reflect.Type // nil of a stream
	Kind   string       // the media type of a stream; "" = a document
	// AnyVersion is set of a verb that answers a client of any version: it is a way out of a mismatch, a person ends a trial of the host by it, or
	// no client of ours asks it. What it says may grow, and never breaks a reader.
	AnyVersion bool
	// Bare is set of a verb that looks up no person, and so needs no database.
	Bare bool
	// Silent is set of a verb of which an earlier client says nothing: without a document nothing is said.
	Silent bool
	// Within is how long whoever asks waits for a document; a stream has no bound but its context.
	Within time.Duration
	// Again begins the command by which a person says a decision again, which may be said twice with the effect of once. The name
	// in Path follows. "" = this is no decision.
	Again string
}

// Nothing is said, or answered.
type Nothing struct{}

// withinDefault bounds a verb that says nothing else.
const withinDefault = 2 * time.Minute

// table lists every verb in the order in which they are declared.
var table []Spec

// Verbs returns every verb that a daemon knows.
func Verbs() []Spec { return slices.Clone(table) }

// verb declares one that is answered with a document.
func verb[In, Out any](method, path string, more ...func(*Spec)) Verb[In, Out] {
	return Verb[In, Out]{declare(Spec{
		Method: method, Path: path, In: reflect.TypeFor[In](), Out: reflect.TypeFor[Out](), Within: withinDefault,
	}, more)}
}

// stream declares one that is answered with something else, of this media type.
func stream[In any](method, path, kind string, more ...func(*Spec)) Stream[In] {
	return Stream[In]{declare(Spec{Method: method, Path: path, In: reflect.TypeFor[In](), Kind: kind}, more)}
}

func declare(s Spec, more []func(*Spec)) Spec {
	for _, set := range more {
		set(&s)
	}
	table = append(table, s)
	return s
}

func anyVersion(s *Spec) { s.AnyVersion = true }

func bare(s *Spec) { s.Bare, s.AnyVersion = true, true }

func silent(s *Spec) { s.Silent = true }

func within(d time.Duration) func(*Spec) { return func(s *Spec) { s.Within = d } }

func decision(again string) func(*Spec) { return func(s *Spec) { s.Again = again } }

// Pattern names a verb: its method and its path.
func (s Spec) Pattern() string { return s.Method + " " + s.Path }

// about is the word in braces in the verb's path, "" if it has none: what kind of name stands there.
func (s Spec) about() string {
	_, after, _ := strings.Cut(s.Path, "{")
	word, _, _ := strings.Cut(after, "}")
	return word
}

// body reports whether what is said of a verb crosses as a JSON document; else it crosses in the query.
func (s Spec) body() bool {
	return s.Method == http.MethodPost && s.Kind == "" && slices.ContainsFunc(fields(s.In), func(f reflect.StructField) bool { return !inPath(f) })
}

// fields are those of a struct, with those of what it embeds in their places.
func fields(t reflect.Type) []reflect.StructField {
	if t.Kind() != reflect.Struct {
		return nil
	}
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Anonymous })
}

// inPath reports whether a field is the name in the path: Of, which no JSON has.
func inPath(f reflect.StructField) bool { return f.Tag.Get("path") != "" }
