/*
 * libspoor: marks changed paths at the spoord of this machine, over its Unix socket.
 *
 * A mark is sent once its batch is full or it is flushed. spoor_flush() returns SPOOR_OK when the daemon has
 * acknowledged all marks made before it: from then on no scan misses them (docs/durability.md). Make a change
 * visible, mark it, flush, and only then report the change as done to your own client.
 *
 * All functions are thread-safe, except that a client must not be used during or after its spoor_close().
 * Threads that flush at the same time share requests. The library starts no thread and installs no signal
 * handler. A client belongs to the process that opened it: after a fork, the child's calls return
 * SPOOR_INVALID.
 *
 * No call takes longer than its timeout, in milliseconds. 0 does not wait. Only the spool may take longer: a
 * call, with or without a timeout, that writes to it or waits for another that does takes as long as its
 * disk.
 *
 * ABI: functions and members of structures are only ever added, at the end; a structure begins with its size.
 */
#ifndef SPOOR_H
#define SPOOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPOOR_API __attribute__((visibility("default")))

typedef struct spoor_client spoor_client;

/* Results. Below 0: the call failed, and spoor_last_error() has the reason. */
enum {
  SPOOR_OK = 0,
  /* All marks are acknowledged or on stable storage in the spool. A scan before their delivery misses them.
   */
  SPOOR_SPOOLED = 1,
  /* An argument is invalid; or a path, by itself: empty, with a NUL byte or "..", or too long. Nothing was
     marked. */
  SPOOR_INVALID = -1,
  /* The daemon has not acknowledged all marks in time. They are held, and sent by a later call. */
  SPOOR_TIMEOUT = -2,
  /* The buffer is full, and the daemon has not acknowledged enough in time: the path was not marked. */
  SPOOR_FULL = -3,
  /*
   * spoor_flush(): the daemon refused paths, such as those that begin with "/" and are on no drive; all
   * others are acknowledged, or in the spool. Returned by the flush of the thread that marked such a path,
   * and of those that flushed meanwhile; for a path in the spool, by that of the program that delivers it. A
   * program that flushes for other threads compares spoor_stats.refused.
   */
  SPOOR_REFUSED = -4,
  /*
   * The daemon refuses the requests of this process: its rights, its token, or limits.max_body is below the
   * length of a path. The marks are held; or in the spool, if there is one. Of spoor_mark(): the buffer is
   * full, and the path was not marked.
   */
  SPOOR_DENIED = -5,
  /*
   * The spool can't be used: the disk fails or is full, it is another directory than was opened, or marks in
   * it were damaged, and are lost. Others are held, or stay in it. Of spoor_mark(): the path was not marked.
   */
  SPOOR_SPOOL_FAILED = -6,
  /* The system lacks memory or another resource. Of spoor_mark(): the path was not marked. */
  SPOOR_NO_RESOURCES = -7
};

typedef enum {
  SPOOR_DIR = 0,  /* the path may be a directory: marks it and its parents */
  SPOOR_FILE = 1, /* the path is a file: marks its parents */
  SPOOR_TREE = 2  /* all below the path may have changed */
} spoor_kind;

/* What is 0 or null has its default. The strings are copied. */
typedef struct {
  size_t size;        /* sizeof(spoor_options) */
  const char* socket; /* of the daemon; default: /run/spoor/spoor.sock */
  const char* token;  /* for the Authorization field; default: none */
  /* An existing directory for marks that can't be sent, of this daemon alone; default: none are stored. */
  const char* spool;
  uint64_t buffer_max; /* bytes of paths that are held in memory; default: 8 MiB, at least 512 KiB */
  uint64_t spool_max;  /* bytes in the spool, of all its clients; default: 256 MiB */
} spoor_options;

typedef struct {
  size_t size;           /* sizeof(spoor_stats), set by the caller; after the call, the bytes that are set */
  uint64_t acknowledged; /* paths; more than once if a response was lost */
  uint64_t ignored;      /* of these, by the namespace rules of the daemon */
  uint64_t refused;      /* by the daemon, as invalid */
  uint64_t held;         /* in memory, not acknowledged */
  uint64_t spooled;      /* written to the spool */
  uint64_t cycle;        /* the daemon's at its last response; 0: none yet */
} spoor_stats;

/*
 * Opens a client; `options` may be null. Does not connect: the daemon need not run. With a spool, the marks
 * that earlier clients left in it are sent by the next flush. SPOOR_INVALID, SPOOR_SPOOL_FAILED or
 * SPOOR_NO_RESOURCES: no client was opened.
 */
SPOOR_API int spoor_open(const spoor_options* options, spoor_client** client);

/*
 * Marks a path of `length` bytes, relative to the top of a drive, "bucket/prefix/object", or absolute, below
 * a drive of the daemon. SPOOR_OK: it is held, and not yet acknowledged.
 */
SPOOR_API int spoor_mark(spoor_client* client, const char* path, size_t length, spoor_kind kind,
                         int timeout_ms);

/*
 * Marks `count` paths, which end in NUL. If it fails, paths[0] to paths[*marked - 1] are held; `marked` may
 * be null.
 */
SPOOR_API int spoor_mark_many(spoor_client* client, const char* const* paths, size_t count, spoor_kind kind,
                              int timeout_ms, size_t* marked);

/* Sends all marks, and waits for the daemon to acknowledge them. */
SPOOR_API int spoor_flush(spoor_client* client, int timeout_ms);

/*
 * Flushes and closes the client, which is gone whatever the result. Marks that are neither acknowledged nor
 * in the spool then are lost: the result says so. A null client is SPOOR_OK.
 */
SPOOR_API int spoor_close(spoor_client* client, int timeout_ms);

SPOOR_API int spoor_get_stats(spoor_client* client, spoor_stats* stats);

/*
 * The reason of the last failure of a call of this thread, printable; "" if none failed. Valid until the next
 * call of this thread.
 */
SPOOR_API const char* spoor_last_error(void);

/* "1.0.0" */
SPOOR_API const char* spoor_version(void);

#ifdef __cplusplus
}
#endif
#endif
