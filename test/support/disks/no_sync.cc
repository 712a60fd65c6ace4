// Preloaded into a program, makes every file sync succeed without doing anything: the negative
// control of the power-loss tests.
extern "C" {
int fsync(int) { return 0; }
int fdatasync(int) { return 0; }
int syncfs(int) { return 0; }
void sync() {}
int sync_file_range(int, long, long, unsigned) { return 0; }
}
