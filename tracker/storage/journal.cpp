#include "tracker/storage/journal.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/data_dir.h"
#include "base/number.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

namespace fs = std::filesystem;

// A segment is read into memory completely; no run writes one of this size.
constexpr std::uint64_t segment_bytes_max = std::uint64_t{1} << 30U;
// How many zeros are written behind a frame that does not fit into the file: as many as the segment has
// bytes, within these bounds. Few for a node that writes little. With more than the maximum, syncs do not get
// faster.
constexpr std::uint64_t ahead_bytes_min = std::uint64_t{16} << 10U;
constexpr std::uint64_t ahead_bytes_max = std::uint64_t{256} << 10U;
constexpr std::string_view suffix = ".log";
constexpr std::size_t start_digits = 20;

fs::path journal_directory(const fs::path& data_dir) { return data_dir / base::data_dir::journal; }

// `START-INSTANCE.log`: an instance never overwrites the files of another one.
std::string file_name_of(JournalPosition start, const InstanceId& instance) {
  return fmt::format("{:020}-{}{}", start, instance.to_string(), suffix);
}

struct SegmentName {
  JournalPosition start = 0;
  InstanceId instance;
};

// nullopt for a file that is no segment.
std::optional<SegmentName> parse_file_name(std::string_view name) {
  if (!name.ends_with(suffix) || name.size() < start_digits + 1 + suffix.size()) return std::nullopt;
  if (name[start_digits] != '-') return std::nullopt;
  name.remove_suffix(suffix.size());
  const auto start = base::parse_number<JournalPosition>(name.substr(0, start_digits));
  const auto instance = InstanceId::parse(name.substr(start_digits + 1));
  return start && instance ? std::optional(SegmentName{*start, *instance}) : std::nullopt;
}

LoadedSegment read_segment(base::FileSystem& files, const fs::path& file, const NodeIdentity& owner,
                           const SegmentName& name) {
  LoadedSegment segment;
  segment.file_name = file.filename().native();
  segment.start = name.start;
  auto bytes = files.read(file, segment_bytes_max);
  if (!bytes) {
    segment.error = bytes.error().message;
    return segment;
  }
  segment.bytes = std::make_unique<const std::string>(*std::move(bytes));
  std::string_view rest = *segment.bytes;
  const auto header = take_segment_header(rest);
  if (!header) {
    segment.error = fmt::format("{}: {}", file.native(), header.error().message);
    // A crash during the creation of a file leaves at most its header.
    const std::size_t header_bytes = encode_segment_header({owner, name.instance, name.start, 0}).size();
    segment.had_frames = header.error().code == Errc::snapshot_unknown || rest.size() > header_bytes;
  } else if (header->owner != owner || header->instance != name.instance || header->start != name.start) {
    segment.error = fmt::format("{}: the header does not match the file name or the node", file.native());
    segment.had_frames = true;
  } else {
    segment.header = *header;
    segment.frames = read_frames(*header, rest);
  }
  return segment;
}

}  // namespace

LoadedJournal load_journal(base::FileSystem& files, const fs::path& data_dir, const NodeIdentity& owner,
                           const InstanceId& instance) {
  LoadedJournal journal;
  const auto names = files.list_directory(journal_directory(data_dir));
  if (!names) {
    if (names.error().code != std::errc::no_such_file_or_directory) journal.error = names.error().message;
    return journal;
  }
  for (const std::string& file_name : *names) {
    const auto name = parse_file_name(file_name);
    if (!name || name->instance != instance) continue;
    journal.segments.push_back(read_segment(files, journal_directory(data_dir) / file_name, owner, *name));
  }
  return journal;
}

void Journal::adopt(const LoadedJournal& loaded) {
  const std::scoped_lock lock(mutex_);
  for (const LoadedSegment& segment : loaded.segments) {
    const std::uint64_t bytes = segment.bytes ? segment.bytes->size() : 0;
    segments_.push_back({directory() / segment.file_name, segment.start, bytes});
    bytes_ += bytes;
  }
}

base::Result<> Journal::begin(const SegmentHeader& header) {
  const std::scoped_lock lock(mutex_);
  return begin_locked(header);
}

base::Result<> Journal::begin_locked(const SegmentHeader& header) {
  output_.reset();
  if (auto done = files_.create_directory(directory()); !done) return done;
  if (auto done = files_.sync_directory(data_dir_); !done) return done;
  const fs::path file = directory() / file_name_of(header.start, header.instance);
  auto output = files_.create(file);
  if (!output) return output.error();
  std::erase_if(segments_, [&](const Segment& segment) {
    if (segment.file != file) return false;
    bytes_ -= segment.bytes;  // opened earlier, and never appended to
    return true;
  });
  const std::string bytes = encode_segment_header(header);
  auto done = (*output)->write_at(0, bytes);
  if (done) done = (*output)->sync();
  if (done) done = files_.sync_directory(directory());
  if (!done) {
    static_cast<void>(files_.remove(file));  // otherwise every attempt would leave a file
    return done;
  }
  segments_.push_back({file, header.start, bytes.size()});
  bytes_ += bytes.size();
  header_ = header;
  file_bytes_ = bytes.size();
  end_ = header.start;
  output_ = *std::move(output);
  return {};
}

base::Result<> Journal::append(std::string_view records) {
  const std::scoped_lock lock(mutex_);
  if (!output_) return base::Error(Errc::not_durable, "the journal is closed after a failed write");
  std::string bytes = encode_frame(header_.instance, end_, records);
  const std::size_t frame_bytes = bytes.size();
  const std::uint64_t offset = segments_.back().bytes;
  if (sync_ && offset + frame_bytes > file_bytes_) {
    file_bytes_ = offset + frame_bytes + std::clamp(offset, ahead_bytes_min, ahead_bytes_max);
    bytes.resize(file_bytes_ - offset);
  }
  if (auto done = output_->write_at(offset, bytes); !done) return fail(done.error());
  if (sync_) {
    if (auto done = output_->sync(); !done) return fail(done.error());
  }
  end_ += records.size();
  segments_.back().bytes += frame_bytes;
  bytes_ += frame_bytes;
  return {};
}

base::Result<> Journal::rotate() {
  const std::scoped_lock lock(mutex_);
  if (!output_) return base::Error(Errc::not_durable, "the journal is closed after a failed write");
  if (end_ == header_.start) return {};  // the segment is empty
  SegmentHeader next = header_;
  next.start = end_;
  next.follows = end_;
  if (auto done = begin_locked(next); !done) return fail(done.error());
  return {};
}

base::Result<> Journal::fail(base::Error error) {
  output_.reset();
  return error;
}

base::Result<> Journal::sync_adopted() {
  const std::scoped_lock lock(mutex_);
  if (segments_.empty()) return {};
  if (auto done = files_.sync_file(segments_.back().file); !done) return done;
  return files_.sync_directory(directory());
}

void Journal::abandon() {
  const std::scoped_lock lock(mutex_);
  if (std::exchange(output_, nullptr)) static_cast<void>(files_.remove(segments_.back().file));
}

void Journal::cut(JournalPosition position) {
  const std::scoped_lock lock(mutex_);
  std::vector<Segment> kept;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const bool is_covered = i + 1 < segments_.size() && segments_[i + 1].start <= position;
    const bool is_removed = is_covered && files_.remove(segments_[i].file).has_value();
    if (is_removed) {
      bytes_ -= segments_[i].bytes;
    } else {
      kept.push_back(segments_[i]);
    }
  }
  segments_ = std::move(kept);
}

std::vector<std::string> Journal::remove_leftovers() {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> outcomes;
  const auto names = files_.list_directory(directory());
  if (!names) return outcomes;  // no directory yet, or begin() reports the error
  for (const std::string& name : *names) {
    const bool is_ours = std::any_of(segments_.begin(), segments_.end(), [&](const Segment& segment) {
      return segment.file.filename().native() == name;
    });
    if (is_ours || !parse_file_name(name)) continue;
    if (auto outcome = keep_or_remove(name); !outcome.empty()) outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

std::string Journal::keep_or_remove(const std::string& file_name) {
  const fs::path file = directory() / file_name;
  const auto bytes = files_.read(file, segment_bytes_max);
  if (!bytes) return bytes.error().message;
  std::string_view rest = *bytes;
  const auto header = take_segment_header(rest);
  std::string aside;
  if (!header) {
    const bool is_unknown = header.error().code == Errc::snapshot_unknown;
    aside =
        is_unknown ? fmt::format("aside.v{}", static_cast<unsigned char>(bytes->front())) : "aside.corrupt";
  } else if (read_frames(*header, rest).how == SegmentEnd::damaged) {
    aside = "aside.corrupt";
  }
  if (aside.empty()) {
    const auto done = files_.remove(file);
    return done ? std::string() : done.error().message;
  }
  const auto done = files_.rename(file, directory() / aside);
  return done ? fmt::format("{} is kept as {}", file.native(), aside) : done.error().message;
}

}  // namespace spoor::tracker
