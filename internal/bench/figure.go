package main

// figure is one line of the report.
type figure struct {
	// group is the heading under which it stands.
	group string
	what  string
	// value is ours, beside the baseline's; both with their units. An empty
	// baseline means that there is none.
	value, beside string
	// goal is empty for what is only reported.
	goal string
	met  bool
}

func (f figure) verdict() string {
	switch {
	case f.goal == "":
		return ""
	case f.met:
		return "met"
	}
	return "MISSED"
}
