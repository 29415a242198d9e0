package prefetch

import "unsafe"

// Of asks for all of *p.
func Of[T any](p *T) { lines(unsafe.Pointer(p), unsafe.Sizeof(*p)) }

// From asks for so many bytes from p on, more than *p has where what follows it in memory
// is known.
func From[T any](p *T, bytes uintptr) { lines(unsafe.Pointer(p), bytes) }

// Around asks for so many bytes before p and from p on, where *p is a part of something.
func Around[T any](p *T, before, bytes uintptr) {
	lines(unsafe.Pointer(uintptr(unsafe.Pointer(p))-before), before+bytes)
}
