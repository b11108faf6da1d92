package sim

// Long is false under the race detector, where long tests take minutes and have little to show it.
const Long = long
