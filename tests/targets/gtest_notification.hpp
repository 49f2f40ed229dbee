/* A class of GoogleTest that its sources take from outside with GTEST_HAS_NOTIFICATION_. Their own
 * one needs std::mutex, which mingw's compiler with Windows' threads lacks. No test here uses it. */
#ifndef TARGETS_GTEST_NOTIFICATION_HPP
#define TARGETS_GTEST_NOTIFICATION_HPP

namespace testing
{
namespace internal
{
class Notification
{
      public:
	void Notify()
	{
	}
	void WaitForNotification()
	{
	}
};
} // namespace internal
} // namespace testing

#endif
