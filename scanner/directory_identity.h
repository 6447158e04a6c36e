// What distinguishes a directory from another one that had its inode number before: file systems give the
// numbers of removed directories to new ones. 32 bits, in the column `birth` of its row (docs/formats.md).
#pragma once

#include <cstdint>

namespace spoor::scanner {

// Nothing is known.
inline constexpr std::uint32_t no_identity = 0;

// Proofs: a directory keeps them as long as it is there. Of the time of creation, and, where the file system
// keeps none (ext4 with inodes of 128 bytes, XFS version 4), of the generation of the inode.
std::uint32_t identity_of_birth(std::int64_t birth_ns);
std::uint32_t identity_of_generation(std::uint32_t generation);

// For a file system that has neither, such as NFS or FUSE. No proof: another ctime may be that of another
// directory, or of this one after a change; the same is that of this one.
std::uint32_t identity_of_ctime(std::int64_t ctime_ns);

bool is_proof(std::uint32_t identity);

}  // namespace spoor::scanner
