// Package harm searches for worlds in which a guard harms: its users get fewer answers than with no
// guard, or with a simple one.
//
// A world is made of numbers from 0 to 1, its Genes, which decide about everything in it. Judge runs
// guards in a world and compares the calls that got a good answer with those of the simple guards:
// no guard, and gobreaker by rate. Outages are taken out, because there a guard has to refuse: see
// Rules. Climb changes the genes of bad worlds to make them worse.
package harm
