package check

import "time"

// disclosed finds what was told that is to be told to nobody. It repeats none of it.
func (c *checker) disclosed() {
	for _, d := range c.run.Disclosures {
		c.blame(Disclosed, d.Where, "", time.Time{}, "it holds a key or a value of a row, or a password")
	}
}
