// sources.h and what every test includes.
#include "sources.h"

#include <gtest/gtest.h>
