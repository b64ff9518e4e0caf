package api

import (
	"net/http"
	"time"
)

const (
	get  = http.MethodGet
	post = http.MethodPost
)

// agentTime bounds a look at agents, which are started for their version, and the try of one.
const agentTime = 5 * time.Minute

// clearTime bounds the removal of what an agent has written, which may be a million files.
const clearTime = 10 * time.Minute

// gcTime bounds a verb that looks at everything a home has on disk.
const gcTime = time.Hour

// The media types of streams.
const (
	DiffKind   = "text/x-diff"
	LinesKind  = "application/x-ndjson" // each line is a document
	EventsKind = "text/event-stream"
	textKind   = "text/plain"
)

// What is asked of the daemon itself. It answers any version where that is the way out of a mismatch.
var (
	DaemonShow = verb[Nothing, Daemon](get, "/v1/daemon", bare)
	DaemonStop = verb[Nothing, Nothing](post, "/v1/daemon/stop", bare)
	// DaemonMetrics is every figure in Prometheus text form. A scraper is no client of ours.
	DaemonMetrics  = stream[Nothing](get, "/v1/metrics", textKind, bare)
	DoctorShow     = verb[Nothing, Doctor](get, "/v1/doctor")
	StatsShow      = verb[OfChange, Stats](get, "/v1/stats")
	StorageShow    = verb[Nothing, Storage](get, "/v1/storage", within(gcTime))
	StorageCollect = verb[GC, Storage](post, "/v1/gc", within(gcTime))
	// SecretScan writes SecretLines as they come.
	SecretScan = stream[Scan](get, "/v1/secrets", LinesKind)
)

// What stands before a request.
var (
	RepositoryShow = verb[InFolder, Repository](get, "/v1/repository")
	TargetShow     = verb[InRepo, Target](get, "/v1/targets")
	TargetTrust    = verb[TrustTarget, Target](post, "/v1/targets/trust")
	TargetDistrust = verb[InRepo, Nothing](post, "/v1/targets/distrust")
	AgentList      = verb[Place, []Agent](get, "/v1/agents", within(agentTime))
	AgentTry       = verb[TestAgent, AgentTest](post, "/v1/agents/test", within(agentTime))
	KeyWanted      = verb[WhoWants, Wanted](get, "/v1/wanted")
	KeyGive        = verb[GiveKeys, Nothing](post, "/v1/changes/{change}/keys")
)

// The groups of the home.
var (
	GroupList   = verb[OfUser, Groups](get, "/v1/groups")
	GroupShow   = verb[OfGroup, Group](get, "/v1/groups/{group}")
	GroupCreate = verb[NewGroup, Begun](post, "/v1/groups")
	GroupCommit = verb[CommitGroup, Begun](post, "/v1/groups/{group}/commit")
	// GroupRefresh brings to a group what has moved in the template; there is no change where nothing has.
	GroupRefresh = verb[RefreshGroup, Begun](post, "/v1/groups/{group}/refresh")
	// GroupPromote has the template get what a change has landed in its group; there is no change where it has that already.
	GroupPromote = verb[string, Begun](post, "/v1/changes/{change}/promote")
	// GroupMemoryClear removes all that a group's agent has written.
	GroupMemoryClear = verb[string, Cleared](post, "/v1/groups/{group}/memory/clear", within(clearTime))
	// HomeComplete adds what a home lacks that was made before there were groups.
	HomeComplete = verb[CompleteHome, Begun](post, "/v1/home")
	// HomeUpgrade has the host run by other programs; there is no change where it runs by them.
	HomeUpgrade = verb[UpgradeHome, Begun](post, "/v1/home/upgrade", within(agentTime))
)

// The people whom the home knows.
var (
	PersonList = verb[Nothing, []Person](get, "/v1/people")
	PersonShow = verb[string, Person](get, "/v1/people/{person}")
	PersonAdd  = verb[NewPerson, Person](post, "/v1/people")
	// PersonLink makes a code that is answered once, and is good for minutes.
	PersonLink   = verb[string, LinkCode](post, "/v1/people/{person}/link")
	PersonRole   = verb[SetRole, Person](post, "/v1/people/{person}/role")
	PersonRemove = verb[string, Person](post, "/v1/people/{person}/remove")
	// AccountUnlink is answered with who had the account.
	AccountUnlink = verb[Unlink, Person](post, "/v1/accounts/unlink")
)

// A change on its path. Whoever follows, keeps or rolls back a change of the host may be of any version.
var (
	ChangeRun    = verb[Run, Change](post, "/v1/changes")
	ChangeList   = verb[Filter, []Change](get, "/v1/changes")
	ChangeShow   = verb[string, Detail](get, "/v1/changes/{change}", anyVersion)
	ChangeWatch  = stream[string](get, "/v1/changes/{change}/watch", EventsKind, anyVersion)
	ChangeDiff   = stream[string](get, "/v1/changes/{change}/diff", DiffKind)
	ChangeExport = stream[string](get, "/v1/changes/{change}/export", DiffKind)
	ChangeCancel = verb[Reason, Nothing](post, "/v1/changes/{change}/cancel")
	ChangeRedo   = verb[Redo, Change](post, "/v1/changes/{change}/redo")
	ChangeBranch = verb[Branch, Branched](post, "/v1/changes/{change}/branch")
	// ChangeConfirm keeps a change that is on trial.
	ChangeConfirm = verb[Confirm, Nothing](post, "/v1/changes/{change}/confirm", decision("sallyport confirm "), silent, anyVersion)
	// ChangeRollback is answered with the change that undoes: itself if it is on trial.
	ChangeRollback = verb[Rollback, Change](post, "/v1/changes/{change}/rollback", anyVersion)
)

// The agent of a change, at its work.
var (
	ChangePause      = verb[Reason, Nothing](post, "/v1/changes/{change}/pause")
	ChangeResume     = verb[string, Nothing](post, "/v1/changes/{change}/resume")
	ChangeTell       = verb[Tell, Delivery](post, "/v1/changes/{change}/tell")
	ChangePutBack    = verb[PutBack, Returned](post, "/v1/changes/{change}/put-back")
	ChangeShell      = stream[Shell](post, "/v1/changes/{change}/shell", ShellProtocol)
	ChangeTranscript = stream[Transcript](get, "/v1/changes/{change}/transcript", LinesKind)
	// SessionResume is answered with the change that the session works for.
	SessionResume = verb[Resume, Change](post, "/v1/sessions/{session}/resume")
)

// Checkpoints of a change.
var (
	CheckpointTake = verb[string, Checkpoint](post, "/v1/changes/{change}/checkpoint")
	CheckpointList = verb[string, []Checkpoint](get, "/v1/changes/{change}/checkpoints")
	CheckpointShow = verb[string, Checkpoint](get, "/v1/checkpoints/{checkpoint}")
	CheckpointDiff = stream[Between](get, "/v1/checkpoints/{checkpoint}/diff", DiffKind)
	// CheckpointExport has the daemon write a checkpoint's diff to a file of its home.
	CheckpointExport = verb[string, Exported](post, "/v1/checkpoints/{checkpoint}/export")
	// CheckpointRestore is answered with the checkpoint that was taken after it.
	CheckpointRestore = verb[string, Checkpoint](post, "/v1/checkpoints/{checkpoint}/restore")
)

// What people say to groups, and what comes of it.
var (
	ChatSay    = verb[Say, Message](post, "/v1/groups/{group}/say")
	CardAnswer = verb[Answer, Message](post, "/v1/cards/{card}/answer")
	ChatWatch  = stream[WatchChat](get, "/v1/groups/{group}/watch", LinesKind)
	ChatList   = verb[InGroup, []Chat](get, "/v1/chats")
	ChatShow   = verb[string, Chat](get, "/v1/chats/{chat}")
	ChatStop   = verb[string, Stopped](post, "/v1/chats/{chat}/stop")
	// ChatForget has a chat go on with a new session, that knows nothing of the one before.
	ChatForget     = verb[string, Forgotten](post, "/v1/chats/{chat}/forget", within(clearTime))
	ChatTranscript = stream[string](get, "/v1/chats/{chat}/transcript", LinesKind)
	MessageList    = verb[Messages, []Message](get, "/v1/messages")
	MessageShow    = verb[string, Answered](get, "/v1/messages/{message}")
	// MessageDrops counts what was dropped before it was a message.
	MessageDrops   = verb[Nothing, []Drop](get, "/v1/drops")
	MessageRetry   = verb[string, Message](post, "/v1/messages/{message}/retry")
	ScheduleAdd    = verb[Plan, Message](post, "/v1/groups/{group}/tasks")
	ScheduleList   = verb[Nothing, []Message](get, "/v1/tasks")
	ScheduleRemove = verb[string, Nothing](post, "/v1/tasks/{task}/remove")
)

// The platforms that people speak on, and who hears what there.
var (
	ChannelAdd    = verb[NewChannel, Channel](post, "/v1/channels")
	ChannelList   = verb[Nothing, []Channel](get, "/v1/channels")
	ChannelShow   = verb[string, Channel](get, "/v1/channels/{channel}")
	ChannelRemove = verb[string, Removed](post, "/v1/channels/{channel}/remove")
	WiringList    = verb[OfChannel, []Conversation](get, "/v1/conversations")
	WiringSet     = verb[SetWiring, Conversation](post, "/v1/conversations/{conversation}/wire")
	WiringRemove  = verb[DropWiring, Conversation](post, "/v1/conversations/{conversation}/unwire")
	WiringPolicy  = verb[SetPolicy, Conversation](post, "/v1/conversations/{conversation}/policy")
	// WiringImport has all rows, or none if one of them is none.
	WiringImport = verb[OldWirings, []Conversation](post, "/v1/wirings/import")
)

// What a person decides, and what was decided. Whoever says yes or no to a change of the host may be of any version.
var (
	ApprovalList = verb[Waiting, []Approval](get, "/v1/approvals")
	// ApprovalShow takes the id of an approval, of a change with one, or of a question about a stranger or a place.
	ApprovalShow = verb[string, Question](get, "/v1/approvals/{question}", anyVersion)
	// ApprovalApprove is answered with the code of a change of the host, once.
	ApprovalApprove = verb[Approve, Approved](post, "/v1/approvals/{approval}/approve", decision("sallyport approve "), anyVersion)
	ApprovalRefuse  = verb[Reason, Nothing](post, "/v1/approvals/{approval}/refuse", decision("sallyport approval show "), anyVersion)
	// ApprovalRework has the agent of a group's change go on with what is to be different in it.
	ApprovalRework = verb[Reason, Nothing](post, "/v1/approvals/{approval}/rework", decision("sallyport approval show "))
	// ApprovalAnswer answers a question about a stranger or a place, in words that its card takes.
	ApprovalAnswer = verb[Answer, Admitted](post, "/v1/approvals/{card}/answer", decision("sallyport approval show "))
	AuditList      = verb[Entries, []Entry](get, "/v1/audit")
	AuditVerify    = verb[Expected, AuditReport](get, "/v1/audit/verify")
)
