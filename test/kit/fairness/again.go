package fairness

// EvenScore is the score from which shares count as even: the goal for a
// hundred cycles.
const EvenScore = 95

// EvenAgain returns the first cycle from which on the shares of the nodes that
// are eligible now are even, given that the membership changed in the cycle
// change and that polls are known before the cycle end. They are even from a
// cycle on when, over the round of the rotation that begins with it,
// [Shares.Overall] and [Shares.Mean] are both at least 95 and at least 95% of
// the turns were had. The second result is false when that did not happen.
func EvenAgain(polls []Poll, eligible Eligible, change, end int64) (int64, bool) {
	round := eligible.Round()
	for from := change; from+round <= end; from++ {
		s := Share(polls, eligible, from, from+round)
		if 100*s.Sum() >= EvenScore*int(round)*len(eligible) && s.Overall() >= EvenScore && s.Mean() >= EvenScore {
			return from, true
		}
	}
	return 0, false
}

// Round is the number of cycles in which each type goes around once.
func (e Eligible) Round() int64 {
	most := 1
	for _, nodes := range e {
		most = max(most, len(nodes))
	}
	return int64(most)
}
