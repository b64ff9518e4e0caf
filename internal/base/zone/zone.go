// Package zone keeps the clocks apart: which zone a home's people live in, what an instant reads there, and which instant
// somebody means who names a time there. What is stored is UTC.
//
// A clock on a wall is no count: it skips an hour in spring and shows one twice in autumn. One rule answers for all that is
// read here, the words of an agent and the times of a schedule: a time that the clock skips is the moment at which it skips,
// and a time that it shows twice is the first of the two.
package zone

import (
	"strings"
	"time"
	_ "time/tzdata" // a machine without a database of zones knows them all the same
)

// Sources are the places that may name a zone, the strongest first; "" is a place that names none.
type Sources struct {
	Environment string // the variable TZ of the daemon
	DotEnv      string // the text of the home's .env
	System      string // the text of /etc/timezone, or where /etc/localtime points to
}

// Choice is the zone that counts, and where it was named.
type Choice struct {
	Location *time.Location
	From     string   // the place that named it; "the default" for UTC
	Invalid  []string // what stronger places named that is no zone, as `place: name`
}

// Of returns the zone that counts: the first that a place names and that exists, else UTC (CH-131).
func Of(s Sources) Choice {
	var c Choice
	for _, place := range []struct{ name, says string }{
		{"TZ", s.Environment},
		{".env", assigned(s.DotEnv)},
		{"the system", s.System},
	} {
		name := named(place.says)
		if name == "" {
			continue
		}
		if loc, ok := load(name); ok {
			c.Location, c.From = loc, place.name
			return c
		}
		c.Invalid = append(c.Invalid, place.name+": "+name)
	}
	c.Location, c.From = time.UTC, "the default"
	return c
}

// Load returns the zone of an IANA name. One that does not exist is UTC, and never an error (CH-123).
func Load(name string) *time.Location {
	loc, _ := load(name)
	return loc
}

// nameMax is longer than the name of any zone.
const nameMax = 64

// load knows the names of zones alone: no path, nothing that means another zone on another machine, and none of the tables that
// count leap seconds.
func load(name string) (*time.Location, bool) {
	kind, _, _ := strings.Cut(name, "/")
	switch kind {
	case "", "Local", "localtime", "posix", "posixrules", "right", "Factory":
		return time.UTC, false
	}
	if len(name) > nameMax || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/") != "" {
		return time.UTC, false
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC, false
	}
	return loc, true
}

// named returns the name in what a place says: TZ may begin with a colon, and a link leads to the name below zoneinfo.
func named(says string) string {
	says = strings.TrimPrefix(strings.TrimSpace(says), ":")
	if _, name, ok := strings.Cut(says, "/zoneinfo/"); ok {
		return name
	}
	return says
}

// assigned returns what the text of a .env file sets TZ to; as in a shell, the last assignment counts.
func assigned(text string) (value string) {
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		v, ok := strings.CutPrefix(strings.TrimSpace(line), "TZ=")
		if !ok {
			continue
		}
		if v != "" && (v[0] == '"' || v[0] == '\'') {
			value, _, _ = strings.Cut(v[1:], v[:1])
			continue
		}
		value = ""
		if words := strings.Fields(v); len(words) > 0 { // a comment may follow
			value = words[0]
		}
	}
	return value
}
