package egress

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"
)

func TestAnEndpointDoesNotReachOutForAnAgent(t *testing.T) {
	for body, want := range map[string]string{
		// What agents ask.
		`{"model":"m","stream":true,"tools":[{"type":"function","name":"web_search","parameters":{"type":"object","properties":{"server_url":{"type":"string"},"image_url":{"type":"string"},"tools":{"type":"array"}}}},{"type":"custom","name":"mcp"}],"input":[{"role":"user","content":[{"type":"input_text","text":"\"type\":\"mcp\" https://x"},{"type":"input_image","image_url":"data:image/png;base64,AA"}]}]}`: "",
		`{"tools":[{"name":"fetch","input_schema":{"type":"object","properties":{"url":{"type":"string"}}}}],"messages":[{"role":"assistant","content":[{"type":"tool_use","name":"fetch","input":{"url":"https://x","source":{"type":"url","url":"https://x"},"image_url":"https://x"}}]}]}`:                                                                                                                            "",
		`{"contents":[{"parts":[{"functionCall":{"name":"f","args":{"fileData":{"fileUri":"https://x"}}}},{"inlineData":{"data":"AA"}}]}],"tools":[{"functionDeclarations":[{"name":"googleSearch"}]}]}`:                                                                                                                                                                                                                 "",
		`{"background":false,"mcp_servers":[],"plugins": [ ],"web_search_options":null,"enable_search":false,"metadata":{"background":true,"plugins":[1]},"messages":[{"content":[{"type":"image","source":{"type":"base64","data":"AA"}}]}]}`:                                                                                                                                                                           "",
		`{"model":"a:onlin","input":"` + strings.Repeat(`\"\\\n\u00e9 `, 1000) + `"}`:        "",
		`{"a":10,"b":[90,19,0],"c":false,"d":"\b\f\n\r\t\"\\\/","e":"�","f":"\u00AF\u00FA"}`: "", `{"a":` + strings.Repeat("1", wordMax) + `}`: "",
		`{"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}`: "",
		`{}`: "", ``: "",
		// A tool of the endpoint's own.
		`{"tools":[{"type":"mcp","server_label":"a"}]}`:                                               whyAskReach,
		`{"tools":[{"type":"function"},{"server_url":"https://evil.example"}]}`:                       whyAskReach,
		`{"tools":[{"t\u0079pe":"\u006dc\u0070"}]}`:                                                   whyAskReach,
		`{"Tools":[{"TYPE":"MCP"}]}`:                                                                  whyAskReach,
		`{"tools":[{"type":"function","type":"web_search_preview"}]}`:                                 whyAskReach,
		`{"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]}`:                                whyAskReach,
		`{"tools":[{"type":"namespace","tools":[{"type":"web_search"}]}]}`:                            whyAskReach,
		`{"input":[{"type":"tool_search_output","tools":[{"type":"mcp"}]}]}`:                          whyAskReach,
		`{"tools":[{"type":"code_interpreter","container":{"network_policy":{"type":"allowlist"}}}]}`: whyAskReach,
		`{"tools":[{"googleSearch":{}}]}`:                                                             whyAskReach,
		`{"tools":{"url_context":{}}}`:                                                                whyAskReach,
		`{"mcp_servers":[{"type":"url","url":"https://evil.example"}]}`:                               whyAskReach,
		`{"web_search_options":{}}`:                                                                   whyAskReach,
		`{"plugins":[{"id":"web"}]}`:                                                                  whyAskReach,
		`{"enable_search" : true}`:                                                                    whyAskReach,
		`{"model":"vendor/m:online"}`:                                                                 whyAskReach,
		// What it would fetch.
		`{"input":[{"content":[{"type":"input_image","image_url":"https://evil.example/?words"}]}]}`:                whyAskReach,
		`{"input":[{"content":[{"type":"input_file","file_url":"\u0068ttps://evil.example"}]}]}`:                    whyAskReach,
		`{"input":[{"type":"function_call_output","output":[{"image_url":"http://evil.example"}]}]}`:                whyAskReach,
		`{"input":[{"type":"computer_call_output","output":{"image_url":"http://evil.example"}}]}`:                  whyAskReach,
		`{"messages":[{"content":[{"type":"image_url","image_url":{"detail":"low","url":"//evil.example"}}]}]}`:     whyAskReach,
		`{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"https://evil.example"}}]}]}`:        whyAskReach,
		`{"messages":[{"content":[{"type":"tool_result","content":[{"source":{"url":"https://evil.example"}}]}]}]}`: whyAskReach,
		`{"contents":[{"parts":[{"file_data":{"file_uri":"https://evil.example"}}]}]}`:                              whyAskReach,
		`{"contents":[{"parts":[{"fileData":{"fileUri":"https://evil.example"}}]}]}`:                                whyAskReach,
		`{"messages":[{"content":[{"type":"image_url","image_url":[{"url":"https://evil.example"}]}]}]}`:            whyAskReach,
		`{"input":[{"content":[{"type":"input_image","image_url":"evil.example/?words"}]}]}`:                        whyAskReach,
		`{"messages":[{"content":[{"type":"file","file":{"file_data":"https://evil.example/?words"}}]}]}`:           whyAskReach,
		`{"messages":[{"content":[{"type":"file","file":{"filename":"a:b","file_data":"JVBERi0xLjQ="}}]}]}`:         "",
		`{"messages":[{"content":[{"type":"video","video":["https://evil.example"]}]}]}`:                            whyAskReach,
		`{"messages":[{"content":[{"image":"https://evil.example"}]}]}`:                                             whyAskReach,
		`{"input":[{"content":[{"type":"input_image","image_url":["https://evil.example"]}]}]}`:                     whyAskReach,
		`{"input":{"type":"input_image","image_url":"https://evil.example"}}`:                                       whyAskReach,
		`{"tools":[{"type":"image_generation","input_image_mask":{"image_url":"https://evil.example"}}]}`:           whyAskReach,
		// A model that searches, on an endpoint that has others.
		`{"model":"` + strings.Repeat("a", askTextMax-7) + `:onlineX"}`: whyAskReach, `{"model":"` + strings.Repeat("a", askTextMax-7) + `:online\u0058"}`: whyAskReach, // the beginning of a text counts
		`{"model":"gpt-4o-search-preview"}`: whyAskReach, `{"model":"gpt-5-search-api"}`: whyAskReach, `{"models":["a/b","a/b:online"]}`: whyAskReach, `{"model":"o3-deep-research"}`: whyAskReach,
		`{"model":"perplexity/sonar-pro"}`: whyAskReach, `{"model":"groq/compound"}`: whyAskReach, `{"model":"compound-beta-mini"}`: whyAskReach, `{"model":"v/sonarqube-7b"}`: "",
		`{"tools":[{"type":"x_search"}]}`: whyAskReach, `{"tools":[{"type":"builtin_function","function":{"name":"$web_search"}}]}`: whyAskReach,
		`{"tools":[{"type":"web_extractor"}]}`: whyAskReach, `{"tools":[{"type":"browser_automation"}]}`: whyAskReach, `{"tools":[{"type":"image_search"}]}`: whyAskReach,
		`{"model":"research-7b","models":["a/b"],"metadata":{"model":"x:online"}}`: "",
		// Letters that some readers take for others.
		`{"toolſ":[{"type":"web_search"}]}`: whyAskReach, `{"tool\u017f":[{"type":"web_search"}]}`: whyAskReach, `{"bac\u212aground":true}`: whyLater,
		// What is done when nobody looks.
		`{"background":true}`: whyLater, `{"background":"true"}`: whyLater, `{"background":1}`: whyLater, `{"background":false,"background":true}`: whyLater,
		// What could be read in another way.
		"\xff\xfe{\x00}\x00": whyNoJSON, "{\x00}\x00": whyNoJSON, "\n\x0a\x20model": whyNoJSON, `[{}]`: whyNoJSON, `"x"`: whyNoJSON, `{]`: whyNoJSON,
		`{'tools':[{'google_search':{}}]}`: whyNoJSON, `{"tools":[{google_search:{}}]}`: whyNoJSON, `{/*"*/"tools":[]/*"*/}`: whyNoJSON, `{"a":nul}`: whyNoJSON, `{"a":01}`: whyNoJSON, `{"a":.5}`: whyNoJSON,
		`{"a":1,}`: whyNoJSON, `{"a" "b"}`: whyNoJSON, `{"a":1 2}`: whyNoJSON, `{"a":[1,]}`: whyNoJSON, `{"a":"b":"c"}`: whyNoJSON, `{,}`: whyNoJSON, `{"a":NaN}`: whyNoJSON, `{"a":"\é"}`: whyNoJSON, `{"a":"\é","tools":[{"type":"mcp"}],"b":"\é"}`: whyNoJSON, `{"a":"\u00é"}`: whyNoJSON, `{"a":"\'"}`: whyNoJSON,
		"{\"a\":\"\xff\"}": whyNoJSON, "{\"a\":\"\xc3\"}": whyNoJSON, `{}{}`: whyNoJSON, `{"a":-1.5e+3,"b":[],"c":[true,null,{}],"d":"é"}`: "",
		"{\"a\":\"\x80\"}": whyNoJSON, `{"a":}`: whyNoJSON, `{,"a":1}`: whyNoJSON, `{"a":` + strings.Repeat("1", wordMax+1) + `}`: whyNoJSON,
		"{\"a\":\"\x01\"}": whyNoJSON, `{"a":"\u00zz"}`: whyNoJSON, `{} {}}`: whyNoJSON,
		`{"a":` + strings.Repeat("[", askDepthMax) + strings.Repeat("]", askDepthMax) + `}`: whyAskDeep,
	} {
		whole := &asking{}
		whole.Write([]byte(body))
		piece := &asking{}
		for i := range len(body) {
			piece.Write([]byte(body[i : i+1]))
		}
		if whole.why != piece.why || (want == "") != (whole.why == "") || !strings.HasPrefix(whole.why, want) {
			t.Errorf("%.120s: %q, in pieces %q", body, whole.why, piece.why)
		}
	}
}

func TestWhatAnEndpointMayNotBeAskedNeverReachesItWhole(t *testing.T) {
	var whole atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			whole.Add(1)
		}
		io.WriteString(w, "{}")
	}))
	defer s.Close()
	w, used := metered(t, wireResponses, s.URL)
	evil := `{"model":"m","input":"` + strings.Repeat("x", 100<<10) + `","tools":[{"type":"mcp","server_url":"https://evil.example"}]}`
	if status, text := w.post("/responses", evil); status != http.StatusForbidden || !strings.Contains(text, whyAskReach) {
		t.Errorf("%d %s", status, text)
	}
	for _, head := range []string{"Content-Type: application/x-protobuf", "Content-Type: application/json; charset=utf-16", "Content-Type: multipart/form-data; boundary=x", "Content-Encoding: gzip"} {
		if resp, _ := w.send("POST /model/responses HTTP/1.1\r\nHost: x\r\n" + head + "\r\nContent-Length: 2\r\n\r\n{}"); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", head, resp.StatusCode)
		}
	}
	if whole.Load() != 0 || len(used) != 0 {
		t.Errorf("%d requests came whole, %d were counted", whole.Load(), len(used))
	}
	if status, _ := w.post("/responses", `{"model":"m","input":"x"}`); status != http.StatusOK || whole.Load() != 1 {
		t.Errorf("what may be asked: %d", status)
	}
	if told := w.decisions(); len(told) != 6 || told[0].Verdict != Refused || !strings.HasPrefix(told[0].Why, whyAskReach) {
		t.Errorf("told %+v", told)
	}
}

func FuzzWhatIsAskedIsReadInPiecesAsInOne(f *testing.F) {
	f.Add(`{"tools":[{"type":"\u006dcp"}],"a":[1,{"b":null}]}`, 7)
	f.Add("{\"a\\", 3)
	f.Fuzz(func(t *testing.T, body string, at int) {
		at = min(max(at, 0), len(body))
		one, two := &asking{}, &asking{}
		one.Write([]byte(body))
		two.Write([]byte(body[:at]))
		two.Write([]byte(body[at:]))
		if one.why != two.why || len(one.text) > askTextMax+4 || len(one.stack) > askDepthMax {
			t.Fatalf("%q, %q", one.why, two.why)
		}
		if one.why == "" && one.next == dueEnd && !json.Valid([]byte(body)) {
			t.Fatalf("%q is no JSON", body)
		}
		if json.Valid([]byte(body)) && utf8.ValidString(body) && strings.HasPrefix(strings.TrimLeft(body, " \t\r\n"), "{") && one.why == whyNoJSON {
			t.Fatalf("%q is JSON", body)
		}
	})
}
