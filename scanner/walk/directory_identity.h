// What distinguishes a directory from another one that had its inode number before: file systems give the
// numbers of removed directories to new ones. 32 bits, in the column `birth` of its row (docs/formats.md).
#pragma once

#include <cstdint>

#include "scanner/store/directory_row.h"
#include "scanner/walk/directory_reader.h"

namespace spoor::scanner {

// Proofs: a directory keeps them as long as it exists. Of the time of creation; or, if the file system keeps
// none (ext4 with inodes of 128 bytes, XFS version 4), of the generation of the inode.
std::uint32_t identity_of_birth(std::int64_t birth_ns);
std::uint32_t identity_of_generation(std::uint32_t generation);

// For a file system that has neither, such as NFS or FUSE. No proof: another ctime may be that of another
// directory, or of this one after a change; the same ctime is that of this one.
std::uint32_t identity_of_ctime(std::int64_t ctime_ns);

// Whether the directory found is proven not to be the stored one, though it has its inode number.
bool is_another(const DirectoryRow& stored, const DirectoryHandle& found);

// Whether nothing proves that the directory found, which has the inode number of the stored one, is that one.
bool may_be_another(const DirectoryRow& stored, const DirectoryHandle& found);

}  // namespace spoor::scanner
