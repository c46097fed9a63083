package mutant

// The steps of locks of issues on GitHub.

func fastForward() Step {
	return Step{
		What: "a reference of GitHub moves to any commit",
		Edits: []Edit{{
			"internal/lock/githublock/issues.go", "Force: new(false)", "Force: new(true)",
		}},
	}
}

func observationOfAComment() Step {
	return Step{
		What: "a lease on GitHub is over though the holder edits its comment",
		Edits: []Edit{{
			"internal/lock/githublock/issues.go", "return beats[beatOf(at.Term, n)].on(at.Record), err", "_ = beats\n\treturn at.Record, err",
		}},
	}
}

func termInTheCommit() Step {
	return Step{
		What: "a heartbeat on GitHub renews the lease whatever term the commit names",
		Edits: []Edit{{
			"internal/lock/record/beats.go", "case now.Term != g.Term:\n\t\treturn lock.ErrLost\n\tcase", "case",
		}},
	}
}

func secondLook() Step {
	return Step{
		What: "the lock of a silent holder on GitHub is used though it has come back",
		Edits: []Edit{{
			"internal/lock/record/beats.go", "if err == nil && version != before.Version {", "if err == nil && version == \"\" {",
		}},
	}
}
