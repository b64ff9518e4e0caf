package modeltest

// geminiWhole is an answer of the generateContent wire.
func geminiWhole(a answer) any {
	parts := []object{}
	if a.think != "" {
		parts = append(parts, object{"text": a.think, "thought": true})
	}
	if a.text != "" || len(a.calls) == 0 {
		parts = append(parts, object{"text": a.text})
	}
	return a.content(append(parts, a.geminiCalls()...), true)
}

func (a answer) geminiCalls() (parts []object) {
	for _, c := range a.calls {
		parts = append(parts, object{"functionCall": object{"id": c.id, "name": c.name, "args": c.object()}})
	}
	return parts
}

func (a answer) content(parts []object, last bool) object {
	candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
	out := object{"candidates": []object{candidate}, "modelVersion": a.model, "responseId": a.id}
	if !last {
		return out
	}
	candidate["finishReason"] = map[End]string{"": "STOP", Long: "MAX_TOKENS", Refused: "SAFETY"}[a.end]
	if a.usage != nil {
		input := a.usage.Input + a.usage.Cached
		out["usageMetadata"] = object{"promptTokenCount": input, "cachedContentTokenCount": a.usage.Cached,
			"candidatesTokenCount": a.usage.Output, "totalTokenCount": input + a.usage.Output}
	}
	return out
}

func geminiStream(s *stream, a answer) {
	if a.think != "" {
		s.send(a.content([]object{{"text": a.think, "thought": true}}, false))
	}
	if a.text != "" {
		s.halves(a.text, func(text string) { s.send(a.content([]object{{"text": text}}, false)) })
	}
	s.mid()
	last := a.geminiCalls()
	if len(last) == 0 {
		last = []object{{"text": ""}}
	}
	s.send(a.content(last, true))
}
