package storetest

import (
	"testing"

	"sallyport/internal/base/disk"
)

// Run holds a store to its contract. fresh returns an opener of a database that no other test uses.
func Run(t *testing.T, fresh func(t *testing.T) Opener) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s *suite)
	}{
		{"change", testChange},
		{"every state can be stored", testStates},
		{"list of changes", testList},
		{"one open change of what a group runs", testOneOpenSwap},
		{"move", testMove},
		{"claim", testClaim},
		{"claims are raced for", testClaimRace},
		{"uids never repeat", testUID},
		{"owner", testOwner},
		{"audit chain", testAudit},
		{"sessions", testSessions},
		{"checkpoints", testCheckpoints},
		{"proposals", testProposals},
		{"questions", testQuestions},
		{"approvals", testApprovals},
		{"deciders race", testDecideRace},
		{"landings", testLandings},
		{"trials", testTrials},
		{"deciders of a trial race", testTrialRace},
		{"leases", testLeases},
		{"trust", testTrust},
		{"what was asked of the network", testAsked},
		{"what models used", testUsage},
		{"where people and groups talk", testConversations},
		{"people, their accounts and roles", testPeople},
		{"codes are good once", testCodes},
		{"channels", testChannels},
		{"a channel of the name of one that was removed", testRemovedChannels},
		{"who hears what", testWirings},
		{"where something was said lately", testLately},
		{"what nobody uses", testUnused},
		{"what waits for a decision", testPending},
		{"what leaves by a channel", testDeliveries},
		{"what is said", testMessages},
		{"what is only counted", testContext},
		{"what a thread takes over", testTaken},
		{"what is asked in a conversation", testCards},
		{"text that would change is refused", testExact},
		{"a failing closure is undone alone", testSavepoint},
		{"a closure that never comes back is undone alone", testPanic},
		{"a cancelled caller is skipped", testCancelled},
		{"256 callers at once", testGroup},
		{"a read sees one moment", testSnapshot},
		{"reading cannot write", testReadOnly},
		{"what is said is told of once it is on the disk", testHear},
		{"reopening keeps everything", testReopen},
		{"closing", testClose},
		{"power lost at any commit", testCrash},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{t: t, fresh: fresh, open: fresh(t)}
			s.reopen(disk.Ops{})
			c.test(t, s)
			if err := s.db.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}
