#include "tracker/packed_bits.h"
