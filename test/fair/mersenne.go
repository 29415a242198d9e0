package fair

import "math"

// mersenne is the generator that the published arrivals were drawn with, the
// Mersenne Twister (MT19937), seeded and read as its users' library does. With
// seed 42 it gives the very arrivals of the published runs.
type mersenne struct {
	state [624]uint32
	next  int
}

func newMersenne(seed uint32) *mersenne {
	m := &mersenne{next: 624}
	m.state[0] = seed
	for i := 1; i < len(m.state); i++ {
		prev := m.state[i-1]
		m.state[i] = 1812433253*(prev^prev>>30) + uint32(i)
	}
	return m
}

func (m *mersenne) refill() {
	n := len(m.state)
	for i := range m.state {
		y := m.state[i]&0x80000000 | m.state[(i+1)%n]&0x7fffffff
		x := m.state[(i+397)%n] ^ y>>1
		if y&1 == 1 {
			x ^= 0x9908b0df
		}
		m.state[i] = x
	}
	m.next = 0
}

func (m *mersenne) uint32() uint32 {
	if m.next == len(m.state) {
		m.refill()
	}
	y := m.state[m.next]
	m.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// Float64 is evenly from 0 to below 1.
func (m *mersenne) Float64() float64 {
	a, b := m.uint32()>>5, m.uint32()>>6
	return (float64(a)*(1<<26) + float64(b)) / (1 << 53)
}

// ExpFloat64 has the mean 1.
func (m *mersenne) ExpFloat64() float64 { return -math.Log(1 - m.Float64()) }
