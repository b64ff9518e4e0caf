package acp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

func TestWhatAgentsSayOfErrorsIsALineThatNamesTheCause(t *testing.T) {
	for raw, want := range map[string]string{
		// gemini
		`{"code":401,"message":"{\"error\":{\"code\":401,\"message\":\"API key not valid\",\"status\":\"UNAUTHENTICATED\"}}"}`: "refused the key (401): API key not valid",
		`{"code":500,"message":"exception TypeError: fetch failed sending request"}`:                                           "cannot be reached: exception TypeError",
		`{"code":429,"message":"Rate limit exceeded. Try again later."}`:                                                       "no more requests at the moment (429): Rate limit",
		`{"code":500,"message":"terminated"}`:                                                                                  "endpoint failed (500): terminated",
		// qwen
		`{"code":-32603,"message":"Internal error","data":{"details":"401 the key is not valid"}}`:          "refused the key (401): 401 the key is not valid",
		`{"code":-32603,"message":"Internal error","data":{"details":"Connection error."}}`:                 "cannot be reached",
		`{"code":-32603,"message":"Internal error","data":{"details":"403 no"}}`:                            "refused the agent's request (403)",
		`{"code":-32603,"message":"Internal error","data":{"details":"Something else went wrong at 4010"}}`: "gave up: Something else",
		// codex-acp, opencode
		`{"code":-32000,"message":"Authentication required"}`:                                                                                "asks for a login",
		`{"code":-32603,"message":"Internal error: the budget of this hour is used up","data":{"service":"session","errorName":"APIError"}}`: "gave up: Internal error: the budget of this hour is used up",
		// whatever else
		`{"code":-32603,"message":"Internal error"}`:         "gave up: Internal error",
		`{"code":-1,"message":"","data":"a text"}`:           "gave up: a text",
		`{"code":-1,"message":"a","data":[1,2]}`:             "gave up: a",
		`{"code":0,"message":""}`:                            "the agent gave up",
		`{"code":404,"message":"there is no such model"}`:    "refused the agent's request (404)",
		`{"code":-1,"message":"got status: 503 from there"}`: "endpoint failed (503)",
	} {
		var f fault
		if err := json.Unmarshal([]byte(raw), &f); err != nil {
			t.Fatal(err)
		}
		if is := f.Error(); !strings.Contains(is, want) {
			t.Errorf("%s is %q, not %q", raw, is, want)
		}
	}
}

func TestAnErrorIsALineWhateverTheAgentSays(t *testing.T) {
	nasty := "x\n\x1b[2J\xff\u202e " + strings.Repeat(`{"error":{"message":"`, 1000) + strings.Repeat("y", 1<<20)
	raw, err := json.Marshal(nasty)
	if err != nil {
		t.Fatal(err)
	}
	is := (&fault{Code: -1, Message: nasty, Data: raw}).Error()
	if len(is) > 1<<10 || strings.ContainsFunc(is, unicode.IsControl) || strings.ContainsRune(is, '\u202e') {
		t.Errorf("%d bytes: %q", len(is), is[:200])
	}
}
