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
	DaemonShow = verb[Nothing, Daemon](get, "/v1/daemon", anyVersion)
	DaemonStop = verb[Nothing, Nothing](post, "/v1/daemon/stop", anyVersion)
	// DaemonMetrics is every figure in Prometheus text form. A scraper is no client of ours.
	DaemonMetrics  = stream[Nothing](get, "/v1/metrics", textKind, anyVersion)
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

// A change on its path.
var (
	ChangeRun    = verb[Run, Change](post, "/v1/changes")
	ChangeList   = verb[Filter, []Change](get, "/v1/changes")
	ChangeShow   = verb[string, Detail](get, "/v1/changes/{change}")
	ChangeWatch  = stream[string](get, "/v1/changes/{change}/watch", EventsKind)
	ChangeDiff   = stream[string](get, "/v1/changes/{change}/diff", DiffKind)
	ChangeExport = stream[string](get, "/v1/changes/{change}/export", DiffKind)
	ChangeCancel = verb[Reason, Nothing](post, "/v1/changes/{change}/cancel")
	ChangeRedo   = verb[Redo, Change](post, "/v1/changes/{change}/redo")
	ChangeBranch = verb[Branch, Branched](post, "/v1/changes/{change}/branch")
	// ChangeConfirm keeps a change that is on trial.
	ChangeConfirm = verb[string, Nothing](post, "/v1/changes/{change}/confirm", decision("sallyport confirm "))
	// ChangeRollback is answered with the change that undoes: itself if it is on trial.
	ChangeRollback = verb[Rollback, Change](post, "/v1/changes/{change}/rollback")
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

// What a person decides, and what was decided.
var (
	ApprovalList = verb[Waiting, []Approval](get, "/v1/approvals")
	// ApprovalShow takes the id of an approval, or of a change with one.
	ApprovalShow    = verb[string, Question](get, "/v1/approvals/{question}")
	ApprovalApprove = verb[Approve, Nothing](post, "/v1/approvals/{approval}/approve", decision("sallyport approve "))
	ApprovalRefuse  = verb[Reason, Nothing](post, "/v1/approvals/{approval}/refuse", decision("sallyport approval show "))
	AuditList       = verb[Entries, []Entry](get, "/v1/audit")
	AuditVerify     = verb[Expected, AuditReport](get, "/v1/audit/verify")
)
