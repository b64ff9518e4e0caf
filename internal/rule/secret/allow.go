package secret

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// allowMark on a line excuses what is found there.
const allowMark = "gitleaks:allow"

// TrustDigest names the words by which a repository's files shape the rules: who trusts them trusts exactly these.
func TrustDigest(toml, ignore []byte) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "sallyport secret rules 1\n%d\n%s%s", len(toml), toml, ignore))
	return hex.EncodeToString(sum[:])
}

// ignored is a `.gitleaksignore`: file and rule of what it excuses. The numbers of lines in it
// are not used: what it excuses must stand in the base as it is, wherever the line is now.
type ignored map[[2]string]bool

func readIgnore(text []byte) ignored {
	out := ignored{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		parts := strings.Split(strings.TrimSpace(lines.Text()), ":")
		if len(parts) == 4 { // commit:file:rule:line
			parts = parts[1:]
		}
		if len(parts) == 3 && !strings.HasPrefix(parts[0], "#") {
			out[[2]string{strings.ReplaceAll(parts[0], `\`, "/"), parts[1]}] = true
		}
	}
	return out
}

// excuse drops the hits that a trusted base excuses: a mark on the line or an entry in the base's list, and in both cases the very line in
// the base's version of the file. A change cannot excuse what it brings.
func (s *Scanner) excuse(ctx context.Context, b Blob, text string, hits []hit) ([]hit, error) {
	if !s.cfg.Trusted || b.Base == nil || (len(s.ignore) == 0 && !strings.Contains(text, allowMark)) {
		return hits, nil
	}
	var base map[string]bool
	lines := strings.SplitAfter(text, "\n")
	var out []hit
	for _, h := range hits {
		if h.line == 0 {
			out = append(out, h)
			continue
		}
		said := strings.Join(lines[min(h.line, len(lines))-1:min(h.last, len(lines))], "")
		if !strings.Contains(said, allowMark) && !s.ignore[[2]string{b.Path, h.rule}] {
			out = append(out, h)
			continue
		}
		if base == nil {
			content, err := b.Base(ctx)
			if err != nil {
				return nil, err
			}
			base = map[string]bool{}
			for line := range strings.Lines(string(content)) {
				base[strings.TrimRight(line, "\r\n")] = true
			}
		}
		for line := range strings.Lines(said) {
			if !base[strings.TrimRight(line, "\r\n")] {
				out = append(out, h)
				break
			}
		}
	}
	return out, nil
}
