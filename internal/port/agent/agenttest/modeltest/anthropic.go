package modeltest

// messagesWhole is an answer of the messages wire.
func messagesWhole(a answer) any {
	content := []object{}
	if a.think != "" {
		content = append(content, object{"type": "thinking", "thinking": a.think, "signature": "c2lnbmF0dXJl"})
	}
	if a.text != "" {
		content = append(content, object{"type": "text", "text": a.text})
	}
	for _, c := range a.calls {
		content = append(content, object{"type": "tool_use", "id": "toolu_" + c.id, "name": c.name, "input": c.object()})
	}
	return a.message(content, a.stopReason())
}

func (a answer) message(content []object, stop any) object {
	usage := object{"input_tokens": 0, "output_tokens": 0}
	if a.usage != nil {
		usage = object{"input_tokens": a.usage.Input, "cache_read_input_tokens": a.usage.Cached, "cache_creation_input_tokens": 0,
			"output_tokens": a.usage.Output}
	}
	out := object{"id": "msg_" + a.id, "type": "message", "role": "assistant", "model": a.model, "content": content,
		"stop_reason": stop, "stop_sequence": nil}
	if a.usage != nil || stop == nil {
		out["usage"] = usage
	}
	return out
}

func (a answer) stopReason() string {
	if a.end != "" {
		return map[End]string{Long: "max_tokens", Refused: "refusal"}[a.end]
	}
	if len(a.calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

func messagesStream(s *stream, a answer) {
	begun := a
	if a.usage != nil {
		begun.usage = &Usage{Input: a.usage.Input, Cached: a.usage.Cached, Output: 1}
	}
	s.send(object{"type": "message_start", "message": begun.message([]object{}, nil)})
	s.send(object{"type": "ping"})
	index := 0
	block := func(start object, deltas func(send func(object))) {
		s.send(object{"type": "content_block_start", "index": index, "content_block": start})
		deltas(func(d object) { s.send(object{"type": "content_block_delta", "index": index, "delta": d}) })
		s.send(object{"type": "content_block_stop", "index": index})
		index++
	}
	if a.think != "" {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, func(send func(object)) {
			send(object{"type": "thinking_delta", "thinking": a.think})
			send(object{"type": "signature_delta", "signature": "c2lnbmF0dXJl"})
		})
	}
	if a.text != "" {
		block(object{"type": "text", "text": ""}, func(send func(object)) {
			s.halves(a.text, func(text string) { send(object{"type": "text_delta", "text": text}) })
		})
	}
	for _, c := range a.calls {
		block(object{"type": "tool_use", "id": "toolu_" + c.id, "name": c.name, "input": object{}}, func(send func(object)) {
			s.halves(c.args, func(text string) { send(object{"type": "input_json_delta", "partial_json": text}) })
		})
	}
	s.mid()
	last := object{"type": "message_delta", "delta": object{"stop_reason": a.stopReason(), "stop_sequence": nil}}
	if a.usage != nil {
		last["usage"] = object{"output_tokens": a.usage.Output}
	}
	s.send(last)
	s.send(object{"type": "message_stop"})
}
