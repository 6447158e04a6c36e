// How RocksDB 7.8 builds and asks its filters. The policy that makes these two is public, they themselves
// are declared in a header that is not installed since 7.0; the order of the functions must be that of the
// library's.
#pragma once

#include <rocksdb/slice.h>
#include <rocksdb/status.h>
#include <rocksdb/version.h>

#include <cstddef>
#include <memory>

static_assert(ROCKSDB_MAJOR == 7, "declare what this RocksDB has in its filter_policy_internal.h");

namespace rocksdb {

class FilterBitsBuilder {
 public:
  virtual ~FilterBitsBuilder() = default;
  virtual void AddKey(const Slice& key) = 0;
  virtual std::size_t EstimateEntriesAdded() = 0;
  virtual Slice Finish(std::unique_ptr<const char[]>* buffer) = 0;
  virtual Slice Finish(std::unique_ptr<const char[]>* buffer, Status* status) = 0;
  virtual Status MaybePostVerify(const Slice& filter) = 0;
  virtual std::size_t ApproximateNumEntries(std::size_t bytes) = 0;
};

class FilterBitsReader {
 public:
  virtual ~FilterBitsReader() = default;
  virtual bool MayMatch(const Slice& key) = 0;
  virtual void MayMatch(int count, Slice** keys, bool* may_match) = 0;
};

}  // namespace rocksdb
