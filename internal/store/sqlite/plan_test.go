package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/disk"
)

// TestWhatIsAskedOftenIsAnsweredByAnIndex protects the reconciler's query from a table
// that has grown for years.
func TestWhatIsAskedOftenIsAnsweredByAnIndex(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "db"), disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	db := opened.(*DB)
	for query, index := range map[string]string{
		claimable: "USING COVERING INDEX change_due",
		nextDue:   "USING COVERING INDEX change_due",
		`SELECT doc FROM landing WHERE state IN ('journaled', 'stranded') AND ended_at IS NULL ORDER BY seq`: "USING INDEX landing_open",
		`SELECT doc FROM trial ` + openTrials: "USING INDEX sqlite_autoindex_trial_1",
		approvalRows + pendingOf:              "USING INDEX question_open",
		questionRows + openQuestions:          "USING INDEX question_open",
		`SELECT seq FROM audit WHERE seq > 5 AND change = 'c' ORDER BY seq LIMIT 9`:                                               "USING COVERING INDEX audit_change",
		`SELECT id FROM change WHERE 1 AND top = 'c' ORDER BY seq DESC LIMIT 100`:                                                 "USING INDEX change_top",
		`SELECT id FROM change WHERE 1 AND state IN ('working', 'landing', 'in_trial') AND swaps = 'g' ORDER BY seq DESC LIMIT 1`: "USING INDEX change_swaps",
		`SELECT id FROM change WHERE 1 AND swaps = 'g' ORDER BY seq DESC LIMIT 9`:                                                 "USING INDEX change_swaps",
		`SELECT doc FROM proposal WHERE change = 'c' ORDER BY number DESC LIMIT 1`:                                                "USING INDEX sqlite_autoindex_proposal_1",
		spentSince:                              "USING INDEX usage_minute",
		spentOf:                                 "USING INDEX usage_row",
		dueChats:                                "USING INDEX message_in_due",
		`SELECT id FROM message_out ` + cardsOf: "USING INDEX message_out_card",
		`SELECT id FROM message_out ` + openCards: "USING INDEX message_out_card",
		lackingOf:   "USING INDEX message_out_chat",
		nextDueChat: "USING COVERING INDEX message_in_due",
		`SELECT id FROM message_in ` + waitingUntil:                                "USING INDEX message_in_due",
		`SELECT count(*) FROM message_in WHERE ` + olderContext:                    "USING INDEX message_in_chat",
		`SELECT count(*) FROM message_in WHERE ` + takenContext:                    "USING INDEX message_in_chat",
		`SELECT doc FROM session WHERE subject = 'c' ORDER BY attempt, started_at`: "USING INDEX session_subject",
	} {
		var plan []string
		args := []any{}
		for range strings.Count(query, "?") {
			args = append(args, 1)
		}
		rows, err := db.reads.Query(`EXPLAIN QUERY PLAN `+query, args...)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, detail)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		all := strings.Join(plan, "; ")
		sorts := strings.Contains(all, "TEMP B-TREE") && !strings.Contains(query, "started_at") && !strings.Contains(query, "ORDER BY +")
		if !strings.Contains(all, index) || sorts {
			t.Errorf("%s\n\tis answered by %s", query, all)
		}
	}
}
