package modeltest

// responsesWhole is an answer of the responses wire.
func responsesWhole(a answer) any { return a.response(a.status(), a.items()) }

// status is the last that a response has.
func (a answer) status() string {
	if a.end != "" {
		return "incomplete"
	}
	return "completed"
}

func (a answer) response(status string, items []object) object {
	out := object{
		"id": "resp_" + a.id, "object": "response", "created_at": 1700000000, "model": a.model, "status": status, "output": items,
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": object{}, "parallel_tool_calls": true,
		"tool_choice": "auto", "tools": []any{}, "temperature": 1, "top_p": 1, "usage": nil,
	}
	if status == "incomplete" {
		out["incomplete_details"] = object{"reason": map[End]string{Long: "max_output_tokens", Refused: "content_filter"}[a.end]}
	}
	if a.usage != nil && status != "in_progress" {
		out["usage"] = object{
			"input_tokens": a.usage.Input + a.usage.Cached, "input_tokens_details": object{"cached_tokens": a.usage.Cached},
			"output_tokens": a.usage.Output, "output_tokens_details": object{"reasoning_tokens": 0},
			"total_tokens": a.usage.Input + a.usage.Cached + a.usage.Output,
		}
	}
	return out
}

func (a answer) items() []object {
	items := []object{}
	if a.think != "" {
		items = append(items, object{"type": "reasoning", "id": "rs_" + a.id, "summary": []object{{"type": "summary_text", "text": a.think}}})
	}
	if a.text != "" || len(a.calls) == 0 {
		items = append(items, object{"type": "message", "id": "msg_" + a.id, "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": a.text, "annotations": []any{}}}})
	}
	for _, c := range a.calls {
		if c.free {
			items = append(items, object{"type": "custom_tool_call", "id": "ctc_" + c.id, "call_id": c.id, "name": c.name,
				"input": c.args, "status": "completed"})
			continue
		}
		call := object{"type": "function_call", "id": "fc_" + c.id, "call_id": c.id, "name": c.name, "arguments": c.args, "status": "completed"}
		if c.group != "" {
			call["namespace"] = c.group
		}
		items = append(items, call)
	}
	return items
}

func responsesStream(s *stream, a answer) {
	number := -1
	send := func(event object) {
		number++
		event["sequence_number"] = number
		s.send(event)
	}
	send(object{"type": "response.created", "response": a.response("in_progress", []object{})})
	send(object{"type": "response.in_progress", "response": a.response("in_progress", []object{})})
	items := a.items()
	for i, item := range items {
		at := func(kind string, more object) {
			more["type"], more["output_index"], more["item_id"] = kind, i, item["id"]
			send(more)
		}
		begun := object{}
		for key, value := range item {
			begun[key] = value
		}
		if _, ok := begun["status"]; ok {
			begun["status"] = "in_progress"
		}
		switch item["type"] {
		case "message":
			begun["content"] = []any{}
			send(object{"type": "response.output_item.added", "output_index": i, "item": begun})
			at("response.content_part.added", object{"content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": []any{}}})
			s.halves(a.text, func(text string) {
				at("response.output_text.delta", object{"content_index": 0, "delta": text, "logprobs": []any{}})
			})
			at("response.output_text.done", object{"content_index": 0, "text": a.text, "logprobs": []any{}})
			at("response.content_part.done", object{"content_index": 0, "part": object{"type": "output_text", "text": a.text, "annotations": []any{}}})
		case "function_call":
			args, _ := item["arguments"].(string)
			begun["arguments"] = ""
			send(object{"type": "response.output_item.added", "output_index": i, "item": begun})
			s.halves(args, func(text string) { at("response.function_call_arguments.delta", object{"delta": text}) })
			at("response.function_call_arguments.done", object{"arguments": args, "name": item["name"]})
		case "custom_tool_call":
			input, _ := item["input"].(string)
			begun["input"] = ""
			send(object{"type": "response.output_item.added", "output_index": i, "item": begun})
			s.halves(input, func(text string) { at("response.custom_tool_call_input.delta", object{"delta": text}) })
			at("response.custom_tool_call_input.done", object{"input": input})
		default: // reasoning
			begun["summary"] = []any{}
			send(object{"type": "response.output_item.added", "output_index": i, "item": begun})
			at("response.reasoning_summary_part.added", object{"summary_index": 0, "part": object{"type": "summary_text", "text": ""}})
			at("response.reasoning_summary_text.delta", object{"summary_index": 0, "delta": a.think})
			at("response.reasoning_summary_text.done", object{"summary_index": 0, "text": a.think})
			at("response.reasoning_summary_part.done", object{"summary_index": 0, "part": object{"type": "summary_text", "text": a.think}})
		}
		send(object{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	send(object{"type": "response." + a.status(), "response": a.response(a.status(), items)})
}

// chatWhole is an answer of the chat completions wire.
func chatWhole(a answer) any {
	message := object{"role": "assistant", "content": a.text, "refusal": nil}
	if a.think != "" {
		message["reasoning_content"] = a.think
	}
	if len(a.calls) > 0 {
		message["tool_calls"] = a.chatCalls()
	}
	out := a.chat("chat.completion", []object{{"index": 0, "message": message, "finish_reason": a.finish(), "logprobs": nil}})
	if a.usage != nil {
		out["usage"] = a.chatUsage()
	}
	return out
}

func (a answer) chat(kind string, choices []object) object {
	return object{"id": "chatcmpl-" + a.id, "object": kind, "created": 1700000000, "model": a.model, "choices": choices}
}

func (a answer) finish() string {
	if a.end != "" {
		return map[End]string{Long: "length", Refused: "content_filter"}[a.end]
	}
	if len(a.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func (a answer) chatCalls() (all []object) {
	for _, c := range a.calls {
		all = append(all, object{"id": c.id, "type": "function", "function": object{"name": c.name, "arguments": c.args}})
	}
	return all
}

func (a answer) chatUsage() object {
	input := a.usage.Input + a.usage.Cached
	return object{"prompt_tokens": input, "completion_tokens": a.usage.Output, "total_tokens": input + a.usage.Output,
		"prompt_tokens_details":     object{"cached_tokens": a.usage.Cached},
		"completion_tokens_details": object{"reasoning_tokens": 0}}
}

func chatStream(s *stream, a answer) {
	delta := func(d object, finish any) {
		s.send(a.chat("chat.completion.chunk", []object{{"index": 0, "delta": d, "finish_reason": finish}}))
	}
	delta(object{"role": "assistant", "content": ""}, nil)
	if a.think != "" {
		delta(object{"reasoning_content": a.think}, nil)
	}
	if a.text != "" {
		s.halves(a.text, func(text string) { delta(object{"content": text}, nil) })
	}
	for i, c := range a.calls {
		delta(object{"tool_calls": []object{{"index": i, "id": c.id, "type": "function", "function": object{"name": c.name, "arguments": ""}}}}, nil)
		s.halves(c.args, func(text string) {
			delta(object{"tool_calls": []object{{"index": i, "function": object{"arguments": text}}}}, nil)
		})
	}
	s.mid()
	delta(object{}, a.finish())
	if a.usage != nil {
		last := a.chat("chat.completion.chunk", []object{})
		last["usage"] = a.chatUsage()
		s.send(last)
	}
	s.line("[DONE]")
}
