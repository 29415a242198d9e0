package jobs

// Crowd has as much in memory as checks may have together.
func (d *Desk) Crowd() { d.checked.Add(checkMemory) }
