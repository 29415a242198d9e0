// Package faults breaks a whole gateway in every way that docs/faults.md lists,
// one named test for each row, and holds that table to the tests.
//
// A gateway runs in this process over loopback, or, where it is to be killed,
// signalled or starved of descriptors, as a process of its own: the test binary
// again, as the command. Behind it is a scripted provider in this process. Faults
// come from the provider's script, from a process that holds the database's lock,
// from files that fail and from raw sockets; the gateway has no switch for any of
// them but the options that replace its network and its disk.
//
// Rows whose times are exact are shown in bubbles of virtual time beside the code
// that they are about; the table says where.
//
// SLUICE_FAULTS_STREAMS (1,000), SLUICE_FAULTS_KILLS (3 rounds) and
// SLUICE_FAULTS_LOCK (10 seconds) size the long ones. With -run TestTable -update
// docs/faults.md is written anew, from a run of all of them.
package faults
