package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"sallyport/internal/port/agent/agenttest/modeltest"
)

const modelUsage = `usage: model start FILE [HEADER VALUE]
       [!] model told ROLE PATTERN
       [!] model said TEXT
       model requests N
       model await N`

// cmdModel is a model's endpoint for agents that need one. start plays the script in FILE, below $MODEL, for whoever has the header;
// await waits until there were N requests; told holds what its last request says that a role has said; said finds a text in the bodies of all of them.
func cmdModel(ts *testscript.TestScript, neg bool, args []string) {
	held := ts.Value(modelKey).(*heldModel)
	switch {
	case len(args) > 1 && args[0] == "start" && held.server == nil && (len(args) == 2 || len(args) == 4):
		raw, err := os.ReadFile(ts.MkAbs(args[1]))
		ts.Check(err)
		script, err := modeltest.Parse(raw)
		ts.Check(err)
		held.server, err = modeltest.New(script...)
		ts.Check(err)
		if len(args) == 4 {
			held.server.Require(args[2], args[3])
		}
		ts.Setenv("MODEL", held.server.URL)
		return
	case held.server == nil:
		ts.Fatalf("there is no model\n%s", modelUsage)
	case len(args) == 3 && args[0] == "told":
		re, err := regexp.Compile(args[2])
		ts.Check(err)
		if told := held.server.Told("", args[1]); re.MatchString(told) == neg {
			ts.Fatalf("%s: %q", args[1], told)
		}
		return
	case len(args) == 2 && args[0] == "said":
		found := false
		for _, r := range held.server.Requests() {
			found = found || bytes.Contains(r.Body, []byte(args[1])) || strings.Contains(r.Query, args[1])
		}
		if found == neg {
			ts.Fatalf("a request says it: %t", found)
		}
		return
	case len(args) == 2 && args[0] == "await" && !neg:
		want, err := strconv.Atoi(args[1])
		ts.Check(err)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ts.Check(held.server.Await(ctx, want))
		return
	case len(args) == 2 && args[0] == "requests" && !neg:
		want, err := strconv.Atoi(args[1])
		ts.Check(err)
		if got := len(held.server.Requests()); got != want {
			ts.Fatalf("%d requests were made", got)
		}
		return
	}
	ts.Fatalf("%s", modelUsage)
}

// modelKey is where a script keeps its model.
type modelKeyType struct{}

var modelKey = modelKeyType{}

type heldModel struct{ server *modeltest.Server }

// holdModel makes room for a script's model and ends it with the script.
func holdModel(env *testscript.Env) {
	held := &heldModel{}
	env.Values[modelKey] = held
	env.Defer(func() {
		if held.server == nil {
			return
		}
		if err := held.server.Close(); err != nil {
			env.T().Log(err)
			env.T().FailNow()
		}
	})
}
