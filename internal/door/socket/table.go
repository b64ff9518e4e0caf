package socket

import (
	"slices"

	"sallyport/internal/door/api"
)

// verbs are those of the table, each with what answers it.
func (s *Server) verbs() []served {
	return slices.Concat(s.daemonVerbs(), s.requestVerbs(), s.groupVerbs(), s.personVerbs(), s.changeVerbs(), s.workVerbs(),
		s.checkpointVerbs(), s.approvalVerbs(), s.chatVerbs(), s.placeVerbs())
}

// daemonVerbs are what is asked of the daemon itself.
func (s *Server) daemonVerbs() []served {
	daemon := daemon{s.Host, s.Changes, s.Meter, s.Home, s.Open, s.Unloaded, s.Keeper, s.started}
	figures := figures{s.Spending, s.Meter}
	stored := stored{s.Storage, s.Home}
	scans := scans{s.Scan}

	return []served{
		mount(s.door, api.DaemonShow, daemon.show),
		mount(s.door, api.DaemonStop, daemon.stop),
		mountRaw(s.door, api.DaemonMetrics, figures.metrics()),
		mount(s.door, api.DoctorShow, daemon.doctor),
		mount(s.door, api.StatsShow, figures.stats),
		mount(s.door, api.StorageShow, stored.show),
		mount(s.door, api.StorageCollect, stored.collect),
		mountBytes(s.door, api.SecretScan, scans.scan),
	}
}

// requestVerbs are what stands before a request.
func (s *Server) requestVerbs() []served {
	requests := requests{s.Requests}
	targets := targets{s.Targets}
	agents := agents{s.Agents}

	return []served{
		mount(s.door, api.RepositoryShow, requests.examine),
		mount(s.door, api.TargetShow, targets.show),
		mount(s.door, api.TargetTrust, targets.trust),
		mount(s.door, api.TargetDistrust, targets.distrust),
		mount(s.door, api.AgentList, agents.list),
		mount(s.door, api.AgentTry, agents.try),
		mount(s.door, api.KeyWanted, requests.wanted),
		mount(s.door, api.KeyGive, requests.give),
	}
}

// groupVerbs are those of the home's groups.
func (s *Server) groupVerbs() []served {
	groups := groups{s.Groups}

	return []served{
		mount(s.door, api.GroupList, groups.list),
		mount(s.door, api.GroupShow, groups.show),
		mount(s.door, api.GroupCreate, groups.create),
		mount(s.door, api.GroupCommit, groups.commit),
		mount(s.door, api.GroupRefresh, groups.refresh),
		mount(s.door, api.GroupPromote, groups.promote),
		mount(s.door, api.HomeComplete, groups.complete),
		mount(s.door, api.HomeUpgrade, groups.upgrade),
	}
}

// personVerbs are those of the people whom the home knows.
func (s *Server) personVerbs() []served {
	members := members{s.Members}

	return []served{
		mount(s.door, api.PersonList, members.list),
		mount(s.door, api.PersonShow, members.show),
		mount(s.door, api.PersonAdd, members.add),
		mount(s.door, api.PersonLink, members.link),
		mount(s.door, api.PersonRole, members.role),
		mount(s.door, api.PersonRemove, members.remove),
		mount(s.door, api.AccountUnlink, members.unlink),
	}
}

// changeVerbs are those of a change on its path.
func (s *Server) changeVerbs() []served {
	requests := requests{s.Requests}
	changes := changes{s.Changes}
	courses := courses{s.Courses}
	trials := trials{s.Trials}

	return []served{
		mount(s.door, api.ChangeRun, requests.run),
		mount(s.door, api.ChangeList, changes.list),
		mount(s.door, api.ChangeShow, changes.show),
		mountRaw(s.door, api.ChangeWatch, changes.watch),
		mountBytes(s.door, api.ChangeDiff, changes.diff),
		mountBytes(s.door, api.ChangeExport, changes.export),
		mount(s.door, api.ChangeCancel, courses.cancel),
		mount(s.door, api.ChangeRedo, courses.redo),
		mount(s.door, api.ChangeBranch, courses.branch),
		mount(s.door, api.ChangeConfirm, trials.confirm),
		mount(s.door, api.ChangeRollback, trials.rollback),
	}
}

// workVerbs are those of the agent of a change, at its work.
func (s *Server) workVerbs() []served {
	work := work{s.Work}
	shells := shells{s.Sessions, &s.shells}
	sessions := sessions{s.Sessions}

	return []served{
		mount(s.door, api.ChangePause, work.pause),
		mount(s.door, api.ChangeResume, work.resume),
		mount(s.door, api.ChangeTell, work.tell),
		mount(s.door, api.ChangePutBack, work.putBack),
		mountRaw(s.door, api.ChangeShell, shells.shell),
		mountBytes(s.door, api.ChangeTranscript, sessions.transcript),
		mount(s.door, api.SessionResume, sessions.resume),
	}
}

// checkpointVerbs are those of the checkpoints of a change.
func (s *Server) checkpointVerbs() []served {
	work := work{s.Work}
	checkpoints := checkpoints{s.Checkpoints, s.Host}

	return []served{
		mount(s.door, api.CheckpointTake, work.checkpoint),
		mount(s.door, api.CheckpointList, checkpoints.list),
		mount(s.door, api.CheckpointShow, checkpoints.show),
		mountBytes(s.door, api.CheckpointDiff, checkpoints.diff),
		mount(s.door, api.CheckpointExport, checkpoints.export),
		mount(s.door, api.CheckpointRestore, checkpoints.restore),
	}
}

// chatVerbs are what people say to groups, and what comes of it.
func (s *Server) chatVerbs() []served {
	chats := chats{s.Chats, s.Approvals}
	afresh := afresh{s.Afresh}

	return []served{
		mount(s.door, api.ChatSay, chats.say),
		mount(s.door, api.CardAnswer, chats.answer),
		mountBytesBy(s.door, api.ChatWatch, chats.watch),
		mount(s.door, api.ChatList, chats.list),
		mount(s.door, api.ChatShow, chats.show),
		mount(s.door, api.ChatStop, chats.stop),
		mount(s.door, api.ChatForget, afresh.forget),
		mount(s.door, api.GroupMemoryClear, afresh.clearMemory),
		mountBytes(s.door, api.ChatTranscript, chats.transcript),
		mount(s.door, api.MessageList, chats.messages),
		mount(s.door, api.MessageShow, chats.message),
		mount(s.door, api.MessageDrops, drops{s.Drops}.count),
		mount(s.door, api.MessageRetry, chats.retry),
		mount(s.door, api.ScheduleAdd, chats.plan),
		mount(s.door, api.ScheduleList, chats.tasks),
		mount(s.door, api.ScheduleRemove, chats.unplan),
	}
}

// placeVerbs are the platforms that people speak on, and who hears what there.
func (s *Server) placeVerbs() []served {
	places := places{s.Places}

	return []served{
		mount(s.door, api.ChannelAdd, places.add),
		mount(s.door, api.ChannelList, places.list),
		mount(s.door, api.ChannelShow, places.show),
		mount(s.door, api.ChannelRemove, places.remove),
		mount(s.door, api.WiringList, places.wirings),
		mount(s.door, api.WiringSet, places.wire),
		mount(s.door, api.WiringRemove, places.unwire),
		mount(s.door, api.WiringPolicy, places.policy),
		mount(s.door, api.WiringImport, places.bring),
	}
}

// approvalVerbs are what a person decides, and what was decided.
func (s *Server) approvalVerbs() []served {
	approvals := approvals{s.Approvals, s.Places}
	entries := entries{s.Audit}

	return []served{
		mount(s.door, api.ApprovalList, approvals.list),
		mount(s.door, api.ApprovalShow, approvals.show),
		mount(s.door, api.ApprovalApprove, approvals.approve),
		mount(s.door, api.ApprovalRefuse, approvals.refuse),
		mount(s.door, api.ApprovalRework, approvals.rework),
		mount(s.door, api.ApprovalAnswer, approvals.answer),
		mount(s.door, api.AuditList, entries.list),
		mount(s.door, api.AuditVerify, entries.verify),
	}
}
