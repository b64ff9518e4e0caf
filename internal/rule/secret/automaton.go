package secret

// automaton finds many words in one pass, whatever the case of their ASCII letters (Aho and Corasick).
// It never changes after it is made.
type automaton struct {
	class  [256]uint16 // byte → column
	width  int         // columns
	next   []int32     // state*width + column → state*width
	words  [][]int32   // state → words that end there, or nil
	length []int32     // word → bytes
}

// found is a word at a place.
type found struct {
	word int32
	at   int32 // where it starts
}

// newAutomaton takes lower-case words without doubles, none of them empty.
func newAutomaton(words []string) *automaton {
	a := &automaton{length: make([]int32, len(words))}
	a.width = 1 // column 0: bytes in no word
	for _, w := range words {
		for i := range len(w) {
			if c := w[i]; a.class[c] == 0 {
				a.class[c] = uint16(a.width)
				a.width++
			}
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		a.class[c-'a'+'A'] = a.class[c]
	}
	a.plant(words)
	a.link()
	return a
}

// plant builds the tree of the words: 0, the root, is no child.
func (a *automaton) plant(words []string) {
	most := 1 // states
	for _, w := range words {
		most += len(w)
	}
	a.next = make([]int32, 0, most*a.width)
	grow := func() int {
		a.next = a.next[:len(a.next)+a.width]
		a.words = append(a.words, nil)
		return len(a.words) - 1
	}
	grow()
	for id, w := range words {
		a.length[id] = int32(len(w))
		state := 0
		for i := range len(w) {
			cell := state*a.width + int(a.class[w[i]])
			if a.next[cell] == 0 {
				child := grow()
				a.next[cell] = int32(child)
			}
			state = int(a.next[cell])
		}
		a.words[state] = append(a.words[state], int32(id))
	}
}

// link fills in where to go on after a byte that is no child, breadth first.
func (a *automaton) link() {
	fail := make([]int32, len(a.words))
	var queue []int32
	for col := range a.width {
		if child := a.next[col]; child > 0 {
			queue = append(queue, child)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		back := fail[state]
		// A full slice expression: states must not share the tail of one array.
		a.words[state] = append(a.words[state][:len(a.words[state]):len(a.words[state])], a.words[back]...)
		for col := range a.width {
			cell := int(state)*a.width + col
			instead := a.next[int(back)*a.width+col]
			if child := a.next[cell]; child > 0 {
				fail[child] = instead
				queue = append(queue, child)
			} else {
				a.next[cell] = instead
			}
		}
	}
	for i := range a.next {
		a.next[i] *= int32(a.width)
	}
}

// find returns every occurrence of every word. It stops and says false once there are more than foundMax.
func (a *automaton) find(text string, foundMax int) (to []found, all bool) {
	state := int32(0)
	width := int32(a.width)
	for i := range len(text) {
		state = a.next[state+int32(a.class[text[i]])]
		if words := a.words[state/width]; words != nil {
			for _, w := range words {
				to = append(to, found{word: w, at: int32(i+1) - a.length[w]})
			}
			if len(to) > foundMax {
				return to, false
			}
		}
	}
	return to, true
}

// mark sets the words that are in the text.
func (a *automaton) mark(text string, seen []bool) {
	state := int32(0)
	width := int32(a.width)
	for i := range len(text) {
		state = a.next[state+int32(a.class[text[i]])]
		for _, w := range a.words[state/width] {
			seen[w] = true
		}
	}
}
