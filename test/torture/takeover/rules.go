package takeover

import "fmt"

// knownRules are those that the log names.
func knownRules() []string { return []string{"session-gone", "ttl"} }

// rules counts, for each rule, the leases of the type that were taken over by
// it, as the logs say.
func (n *clusterRun) rules() map[string]int {
	counts := make(map[string]int)
	for _, rule := range knownRules() {
		for _, m := range n.members {
			counts[rule] += m.process.Log.Count(`"msg":"Lease taken over"`, `"name":"order-observer-poll"`, fmt.Sprintf(`"rule":%q`, rule))
		}
	}
	return counts
}

// ruleBetween is the rule that was applied between two counts; empty for none.
func ruleBetween(before, after map[string]int) string {
	for _, rule := range knownRules() {
		if after[rule] > before[rule] {
			return rule
		}
	}
	return ""
}
