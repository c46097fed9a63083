package mutant

// The steps of locks in Leases of Kubernetes.

func observationOfALease() Step {
	return Step{
		What: "a lease in Kubernetes is over when the clock of its holder says so",
		Edits: []Edit{{
			"internal/lock/record/records.go", "return r.TTL - time.Since(r.since)", "return r.TTL - time.Since(r.RenewedAt)",
		}},
	}
}

func preconditionsOfADelete() Step {
	return Step{
		What: "a release in Kubernetes deletes whatever Lease is there",
		Edits: []Edit{{
			"internal/lock/kubelease/leases.go", "Preconditions: &meta.Preconditions{UID: new(types.UID(uid)), ResourceVersion: &version},",
			"PropagationPolicy: func() *meta.DeletionPropagation { _, _ = types.UID(uid), version; return nil }(),",
		}},
	}
}

func noteOfTheHolder() Step {
	return Step{
		What: "a note in a Lease is believed whoever has the Lease",
		Edits: []Edit{{
			"internal/lock/kubelease/lease.go", `!= nil || n.Node != r.Node || r.Term != "" && n.Acquired != stamp(l.Spec.AcquireTime) {`, "!= nil {",
		}},
	}
}

func conflictOfACreate() Step {
	return Step{
		What: "a Lease that is there when it is created is taken for the own one",
		Edits: []Edit{{
			"internal/lock/kubelease/leases.go", "if apierrors.IsAlreadyExists(err) {\n\t\t\treturn record.Record{}, record.ErrConflict", "if apierrors.IsAlreadyExists(err) {\n\t\t\treturn r, nil",
		}},
	}
}
