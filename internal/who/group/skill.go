package group

import (
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"sallyport/internal/base/inert"
)

// Skill is one that a group's agent can read: a folder of the group's skills that has a file of the name that skills have.
type Skill struct {
	Name        string
	Description string // in one line; "" = it says nothing of itself
	Path        string // of its file, from the folder of the group's skills
}

const (
	skillFile      = "SKILL.md"
	skillsMax      = 100      // skills of one group
	skillHeadMax   = 16 << 10 // bytes of a skill's file in which its description stands
	descriptionMax = 1 << 10  // bytes of a description
)

// isSkill reports whether a path is the file of a skill.
func isSkill(p string) bool {
	return path.Base(p) == skillFile && path.Dir(path.Dir(p)) == skillsFolder
}

// describe reads what the skill's file says of itself.
func (s *Skill) describe(file io.Reader) error {
	head, err := io.ReadAll(io.LimitReader(file, skillHeadMax))
	if err != nil {
		return fmt.Errorf("read the skill %s: %w", inert.Path(s.Name), err)
	}
	s.Description = described(string(head))
	return nil
}

// described is what a skill's file says of itself: the description in its front matter, which may go over several lines.
func described(head string) string {
	head = strings.ReplaceAll(strings.TrimPrefix(head, "\ufeff"), "\r\n", "\n")
	rest, there := strings.CutPrefix(head, "---\n")
	front, _, ends := strings.Cut("\n"+rest, "\n---")
	if !there || !ends {
		return ""
	}
	_, text, there := strings.Cut(front, "\ndescription:")
	if !there {
		return ""
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i > 0 && line != "" && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			lines = lines[:i] // another key
			break
		}
	}
	if first := strings.TrimSpace(lines[0]); strings.Trim(first, ">|+-0123456789") == "" {
		lines[0] = "" // it only says how the lines below are broken
	}
	return inert.Short(unquoted(strings.Join(strings.Fields(strings.Join(lines, " ")), " ")), descriptionMax)
}

// unquoted is what a text in quotes stands for; one without them stands for itself.
func unquoted(text string) string {
	if inner, ok := strings.CutPrefix(text, "'"); ok && strings.HasSuffix(inner, "'") {
		return strings.ReplaceAll(strings.TrimSuffix(inner, "'"), "''", "'")
	}
	if plain, err := strconv.Unquote(text); err == nil && strings.HasPrefix(text, `"`) {
		return plain
	}
	return text
}
