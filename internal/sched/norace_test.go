//go:build !race

package sched_test

const race = false
